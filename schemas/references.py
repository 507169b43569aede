# SPDX-License-Identifier: Apache-2.0
"""`${name}` in a stack file: the short list of what can be referred to."""

from __future__ import annotations

import re
from collections.abc import Mapping

REFERENCES: Mapping[str, str] = {
    "registry": "address of the stack's repository",
    "bucket": "the stack's bucket, as a URL",
    "region": "the stack's region",
    "team": "trainyard:team",
    "environment": "trainyard:environment",
    "stack": "name of the stack",
    "job": "name of the job",
    "run": "name of the run",
}
_REFERENCE = re.compile(r"\$\{([A-Za-z][A-Za-z0-9.-]*)\}")


def names_in(text: str) -> tuple[str, ...]:
    """The names a text refers to, in order."""
    return tuple(_REFERENCE.findall(text))
