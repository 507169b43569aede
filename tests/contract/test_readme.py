# SPDX-License-Identifier: Apache-2.0
"""Commands, make targets and files that the README and the docs name exist."""

import re
from pathlib import Path

import pytest

from components.plan import show
from components.plan.build import plan_of
from schemas.judge import judge_file
from trainyard.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
PROSE = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_and_file_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`(?:\.\./)*make ([a-z]+)`", text)) <= targets
    for named in re.findall(r"\bdocs/[a-z-]+(?:/[0-9a-z-]+)?\.md", text):
        assert (ROOT / named).exists(), f"{page.name} names {named}"
    for command in re.findall(r"\.venv/bin/trainyard ([a-z]+)", text):
        assert command in COMMANDS, f"{page.name} names `trainyard {command}`"


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_lines_of_prose_fit_a_screen(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in prose.splitlines() if not line.startswith(("|", "    ")) and "](" not in line]
    assert [line for line in lines if len(line) > 120] == []


def test_the_readme_leads_with_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert text.index("make up") < text.index("make test") < text.index("How it flows")


def test_the_readme_leads_to_every_page() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in text] == []


def test_the_readmes_stack_file_has_no_findings_and_makes_the_described_resources(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    block, outcome = re.findall(r"```yaml\n(.*?)```\n(.*?)\n## ", readme, re.DOTALL)[0]
    file = tmp_path / "Pulumi.vision-dev.yaml"
    file.write_text(block, "utf-8")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "train.py").touch()
    judged = judge_file(file)
    assert judged.findings == ()
    plan = show.plan_text(plan_of(judged))
    rows = [line for line in outcome.splitlines() if line.startswith("|")]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) > 10
    assert [name for name in named if name not in plan] == []
