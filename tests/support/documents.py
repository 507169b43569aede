# SPDX-License-Identifier: Apache-2.0
"""A sample launch document: the one that the plan writes for a small job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from launcher.document import VARIABLE, Launch, read_launch
from schemas.model import NOTHING
from tests.support.samples import job, plan


def document(number: int = 0, **changes: Any) -> dict[str, Any]:
    """The launch document of one of three PyTorch nodes."""
    node = plan(jobs={"train": job(ports={"data": "all"})}).jobs["train"].runs["base"].nodes[number]
    text = json.dumps(node.launch).replace("${bucket}", "oci://runs@space")
    return {**json.loads(text), **changes}


def launch(number: int = 0, environment: Mapping[str, str] = NOTHING, **changes: Any) -> Launch:
    """The same, as the launcher reads it on a node with this environment."""
    return read_launch({**environment, VARIABLE: json.dumps(document(number, **changes))})
