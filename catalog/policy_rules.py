# SPDX-License-Identifier: Apache-2.0
"""The names of the policy pack's rules, for stack files that waive one. A rule is a file, so the files are the list."""

from functools import cache
from pathlib import Path

_RULES = Path(__file__).resolve().parents[1] / "policies" / "rules"


@cache
def rule_ids() -> tuple[str, ...]:
    """All ids, sorted: `policies/rules/public_bucket.py` is `public-bucket`."""
    return tuple(sorted(file.stem.replace("_", "-") for file in _RULES.glob("*.py") if file.stem != "__init__"))
