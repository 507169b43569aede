# SPDX-License-Identifier: Apache-2.0
"""Writes docs/findings.md from the codes: `python -m schemas.findings_page`."""

from __future__ import annotations

from pathlib import Path

from catalog.platforms import platform_word, platforms
from catalog.tables import table
from schemas.checks import own_rules, shared_rules
from schemas.compose import write_generated
from schemas.judge import OF_SEVERAL, titles_by_code
from schemas.source import shape_severity

PAGE = Path(__file__).resolve().parents[1] / "docs/findings.md"
_HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# What `trainyard check` finds

For users who look up a finding. Made by `python -m schemas.findings_page`; a test compares the two. An error fails the
check, a warning only with `--strict`. Codes up to TY099 are about the file's schema; the other checks run on the parts
of the file that are valid by the schema. TY114, TY615 and TY716 to TY719 compare several files: all files of one check,
and the other stack files in their folders.

| code | severity | platform | what is wrong |
| --- | --- | --- | --- |
"""
_BROUGHT = """
# What `trainyard convert` says

These codes are about the file that is converted (docs/bringing.md). An error: there is no stack, and the command ends
with 2. A warning: something was left out, and it ends with 1.

| code | severity | what it is |
| --- | --- | --- |
"""


def render_findings_page() -> str:
    by_code = {code: (rule.severity, "every") for code, rule in shared_rules().items()}
    for name in platforms():
        own = own_rules(name)
        by_code = {**{code: (rule.severity, platform_word(name)) for code, rule in own.items()}, **by_code}
    lines = []
    for code, title in titles_by_code().items():
        of_several = OF_SEVERAL[code][1] if code in OF_SEVERAL else shape_severity(code)
        severity, platform = by_code.get(code, (of_several, "every"))
        lines.append(f"| {code} | {severity} | {platform} | {title} |\n")
    notes = (f"| {code} | {row['severity']} | {row['title']} |\n" for code, row in table("bring/codes").items())
    return _HEAD + "".join(lines) + _BROUGHT + "".join(notes)


if __name__ == "__main__":
    write_generated(PAGE, render_findings_page())
