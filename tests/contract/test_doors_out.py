# SPDX-License-Identifier: Apache-2.0
"""Each part of the program prints through one function, which escapes control sequences. A new `print` elsewhere fails
here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("catalog", "components", "policies", "provider", "schemas", "trainyard")
# The modules with these functions, and programs whose output is for other programs or a page of docs/.
DOORS = {
    "trainyard/cli/out.py",
    "trainyard/engine/__main__.py",
    "trainyard/engine/language_host.py",
    "trainyard/engine/program.py",
    "trainyard/engine/progress.py",
    "trainyard/review/github_comment.py",
    "trainyard/review/gitlab_note.py",
    "trainyard/review/sandbox_supervisor.py",
    "policies/__main__.py",
    "policies/describe.py",
    "provider/base/wire.py",
    "provider/base/serve.py",
}
PRINTS = {"print", "click.echo", "click.secho", "click.confirm", "click.prompt", "click.echo_via_pager"}
STREAMS = ("sys.stdout.", "sys.stderr.", "sys.__stdout__.", "sys.__stderr__.")
TO_THE_ENGINE = ("pulumi.log.", "pulumi.RunError", "RunError")


def sources(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            # Test code in place of a team's training code.
            if "programs" not in path.parts:
                yield str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8"))


def calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def test_no_module_prints_without_its_escaping_function() -> None:
    past = [
        f"{name}:{line}: {called}"
        for name, tree in sources(*ROOMS)
        if name not in DOORS
        for line, called in calls(tree)
        if called in PRINTS or (called.startswith(STREAMS) and called.rpartition(".")[2] in ("write", "writelines"))
    ]
    assert past == []


def test_the_program_logs_to_the_engine_only_through_its_log_functions() -> None:
    past = [
        f"{name}:{line}: {called}"
        for name, tree in sources("components")
        if name != "components/messages.py"
        for line, called in calls(tree)
        if called.startswith(TO_THE_ENGINE)
    ]
    assert past == []


def test_each_listed_printing_module_exists() -> None:
    assert all((ROOT / door).is_file() for door in DOORS)
