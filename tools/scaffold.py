# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.scaffold NAME SUMMARY`: writes a new platform that can be checked and planned, and no more yet.

It writes the home `components/NAME` and a row of catalog/platforms.toml, and makes the generated files again.
docs/architecture.md lists the modules that the platform can add from then on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from catalog.platforms import platforms

ROOT = Path(__file__).resolve().parents[1]
_LICENSE = "# SPDX-License-Identifier: Apache-2.0\n"
_ROW = """
[{name}]
summary = "{summary}"
deploys = false
"""
_STACK = '''"""The Stack of {name}: the fields of every platform, and its own."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.model import Stack
from schemas.stack_file import StackFile


@dataclass(frozen=True, slots=True, kw_only=True)
class {kind}Stack(Stack):
    """Each field is a key of the stack file. section.schema.json describes it for people and editors."""


STACK_FILE = StackFile({kind}Stack)
'''
_PLAN = '''"""The plan of {name}: {summary}."""

from __future__ import annotations

from components.plan.platform import Planning, Rendezvous, Words

PLANNING = Planning(
    way_to_services="directly",
    lower=lambda stack, plan, jobs: plan,
    rendezvous=lambda layout: Rendezvous("bucket", "addresses are exchanged in the bucket"),
    words=lambda plan: Words([], [], [], []),
)
'''
_ACCESS_REPORT = '''"""The report of `trainyard access` for {name}."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.platform import AccessReporting


@dataclass(frozen=True, slots=True)
class {kind}AccessReport:
    stack: str

    def text(self) -> str:
        return f"{{self.stack}}: whoever may use {name} may do everything"


ACCESS_REPORTING = AccessReporting(lambda plan, deployers: {kind}AccessReport(plan.stack))
'''
_MODULES = {"stack.py": _STACK, "plan.py": _PLAN, "access_report.py": _ACCESS_REPORT}
# The programs that make docs/findings.md and the schema for editors from the rows and homes of all platforms.
GENERATORS = ("schemas.compose", "schemas.findings_page")


def write_home(root: Path, name: str, summary: str) -> Path:
    """Writes the home of a platform, and its row."""
    home, words = root / "components" / name, {"name": name, "summary": summary, "kind": name.capitalize()}
    home.mkdir()
    example = {"trainyard:platform": name, "trainyard:team": "team", "trainyard:environment": "dev"}
    section = {"properties": {"config": {"examples": [example]}}, "$defs": {"config": {"properties": {}}}}
    (home / "__init__.py").write_text(_LICENSE)
    for module, text in _MODULES.items():
        (home / module).write_text(_LICENSE + text.format(**words))
    (home / "section.schema.json").write_text(json.dumps(section, indent=2) + "\n")
    with (root / "catalog/platforms.toml").open("a", encoding="utf-8") as table:
        table.write(_ROW.format(name=name, summary=summary))
    return home


def why_not(name: str, summary: str) -> str:
    """Why the name or summary is not valid. Empty if both are."""
    if not re.fullmatch(r"[a-z][a-z0-9]*", name):
        return f"`{name}` is not a valid name: use small letters and digits, so that Python can import it"
    if name in platforms() or (ROOT / "components" / name).exists():
        return f"components/{name} exists already"
    if not summary.isprintable() or {'"', "\\"} & set(summary):
        return "the summary must be one line without quotation marks and backslashes: it becomes TOML and Python"
    return ""


def main(words: list[str]) -> int:
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    name, summary = words
    if reason := why_not(name, summary):
        print(f"trainyard: {reason}", file=sys.stderr)
        return 1
    home = write_home(ROOT, name, summary)
    for generator in GENERATORS:
        subprocess.run([sys.executable, "-m", generator], cwd=ROOT, check=True)
    print(f"{home.relative_to(ROOT)} is written, with a row in catalog/platforms.toml. Next: docs/architecture.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
