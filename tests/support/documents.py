# SPDX-License-Identifier: Apache-2.0
"""A launch document to begin with: what the plan writes for a small job."""

from __future__ import annotations

import json
from typing import Any

from launcher.document import VARIABLE, Launch, read
from tests.support.samples import job, plan


def document(number: int = 0, **changes: Any) -> dict[str, Any]:
    """Of one of three PyTorch nodes."""
    node = plan(jobs={"train": job(ports={"data": "all"})}).jobs["train"].runs["base"].nodes[number]
    return {**json.loads(json.dumps(node.launch)), **changes}


def launch(number: int = 0, **changes: Any) -> Launch:
    """The same, as the launcher has it."""
    return read({VARIABLE: json.dumps(document(number, **changes))})
