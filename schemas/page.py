# SPDX-License-Identifier: Apache-2.0
"""docs/findings.md, from the codes themselves: `python -m schemas.page > docs/findings.md`."""

from __future__ import annotations

import sys

from catalog.platforms import platforms
from schemas.checks import rules
from schemas.judge import OF_SEVERAL, codes
from schemas.platforms import stack_file
from schemas.source import shape_severity

_HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# What `trainyard check` finds

Made by `python -m schemas.page`; a test keeps it fresh. An error fails the check, a warning only with `--strict`.
Codes up to TY099 concern the file's shape; what a stack means is judged as far as the shape is right. TY114, TY615 and
TY716 to TY719 are found by looking at several files: those that are checked at once, and those that lie beside them.

| code | severity | platform | what is wrong |
| --- | --- | --- | --- |
"""


def render() -> str:
    by_code = {code: (rule.severity, "every") for code, rule in rules().items()}
    for name in platforms():
        own = stack_file(name).rules()
        by_code = {**{code: (rule.severity, name) for code, rule in own.items()}, **by_code}
    lines = []
    for code, title in codes().items():
        severity, platform = by_code.get(code, (_severity(code), "every"))
        lines.append(f"| {code} | {severity} | {platform} | {title} |\n")
    return _HEAD + "".join(lines)


def _severity(code: str) -> str:
    return OF_SEVERAL[code][1] if code in OF_SEVERAL else shape_severity(code)


if __name__ == "__main__":
    sys.stdout.write(render())
