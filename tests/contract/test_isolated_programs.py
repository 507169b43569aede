# SPDX-License-Identifier: Apache-2.0
"""The product starts Python and git by trainyard/engine/isolated.py only, so that no file of the current folder is
imported, and no repository that a change committed is asked. A new start elsewhere fails here."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("catalog", "components", "launcher", "localcloud", "policies", "provider", "schemas", "trainyard")
DOOR = "trainyard/engine/isolated.py"
# Modules that ship to nodes and machines, or run where nothing of ours is installed: they import nothing of the door.
# They start Python with -I, or the program that the team named, isolated as a node is.
ALONE = ("launcher/", "localcloud/aws/hosts/", "localcloud/openpai/hosts/")
# What else begins with a Python or with git, and why.
ELSEWHERE = {
    ("trainyard/engine/language_host.py", "project_python.python"): "the project's program, or a plugin that it names",
    ("localcloud/oci/job_runs/run_resources.py", "'python'"): "on a node: the launcher of an image, with -I",
    ("launcher/code.py", "'git'"): "on a node, as its user: a new clone, and the team's own code",
    ("launcher/aws_dl1/fetch.py", "sys.executable"): "on a machine: its function program_words begins with -I",
    ("launcher/aws_dl1/machine/starting.py", "sys.executable"): "on a machine: the same",
    ("launcher/commands.py", "sys.executable"): "on a node: the team's own command",
    ("launcher/frameworks/horovod.py", "sys.executable"): "on a node: the team's own command",
}
# How Python starts programs. `subprocess.Popen` and the like may be imported by their names.
STARTS = re.compile(
    r"^(subprocess\.)?(run|Popen|call|check_call|check_output|getoutput|getstatusoutput)$|^os\.(exec|spawn|posix_spawn)"
    r"|^(os\.(system|popen|startfile)|pty\.spawn)$|^(asyncio\.)?(create_subprocess_exec|create_subprocess_shell)$"
)
# By these, a program starts in ways that this test cannot read.
UNREADABLE = re.compile(
    r"^(os\.(system|popen)|subprocess\.(getoutput|getstatusoutput)|(asyncio\.)?create_subprocess_shell)$"
)
# Only files with one of these are parsed, which is most of this test's time.
MAY_START = re.compile(
    r"""subprocess|Popen|sys\.executable|os\.(exec|spawn|posix_spawn|system|popen)|\bpty\.|["']-[mcuIPS]["']|["']git["']"""
)
A_PYTHON = re.compile(r"^sys\.executable$|python|interpreter", re.IGNORECASE)


@functools.cache
def sources() -> list[tuple[str, ast.Module]]:
    found = []
    for path in [ROOT / "__main__.py", *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))]:
        name = str(path.relative_to(ROOT))
        text = path.read_text("utf-8")
        # Test code in place of a team's training code.
        if MAY_START.search(text) and not name.startswith("trainyard/rehearsal/programs/"):
            found.append((name, ast.parse(text)))
    return found


def starts_a_python(word: ast.expr) -> bool:
    if isinstance(word, ast.Constant):
        return isinstance(word.value, str) and re.fullmatch(r"(.*/)?python[\d.]*", word.value) is not None
    if isinstance(word, ast.Call):
        inner = [*word.args, word.func.value] if isinstance(word.func, ast.Attribute) else word.args
        plain = ast.unparse(word.func).endswith(("str", "fspath", ".resolve", ".absolute"))
        return plain and any(map(starts_a_python, inner))
    if isinstance(word, ast.BinOp):
        return starts_a_python(word.right)
    return isinstance(word, ast.Name | ast.Attribute) and A_PYTHON.search(ast.unparse(word)) is not None


def starts_git(word: ast.expr) -> bool:
    return isinstance(word, ast.Constant) and word.value == "git"


def past_the_door(name: str, tree: ast.Module) -> Iterator[str]:
    """The lists of words that begin with a Python or git, and the calls that start one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            words, option = node.elts, node.elts[1]
            is_command = isinstance(option, ast.Starred) or starts_git(words[0])
            is_command |= isinstance(option, ast.Constant) and str(option.value).startswith("-")
            isolated = isinstance(option, ast.Constant) and option.value == "-I" and name.startswith(ALONE)
        elif isinstance(node, ast.Call) and node.args and STARTS.match(ast.unparse(node.func)):
            words, is_command = node.args, not isinstance(node.args[0], ast.List | ast.Tuple)
            # A list of words beside the program is judged by itself.
            isolated = any(isinstance(each, ast.List) or "isolated_python(" in ast.unparse(each) for each in words[1:])
        else:
            continue
        if is_command and not isolated and (starts_a_python(words[0]) or starts_git(words[0])):
            yield f"{name}:{node.lineno}: {ast.unparse(words[0])}"


def listed(found: str) -> bool:
    place, word = found.rsplit(": ", 1)
    return (place.partition(":")[0], word) in ELSEWHERE


def test_python_and_git_are_started_by_one_module() -> None:
    found = [each for name, tree in sources() if name != DOOR for each in past_the_door(name, tree)]
    assert [each for each in found if not listed(each)] == []
    assert {(each.partition(":")[0], each.rsplit(": ", 1)[1]) for each in found} == set(ELSEWHERE), "an old row"


def test_no_program_is_started_in_a_way_that_hides_its_words() -> None:
    assert not [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (
            UNREADABLE.match(ast.unparse(node.func))
            or any(each.arg == "shell" and ast.unparse(each.value) != "False" for each in node.keywords)
        )
    ]


@pytest.mark.parametrize(
    "start",
    [
        "subprocess.run([sys.executable, '-m', 'pip'])", "Popen(['python3', '-c', text])",
        "words = [str(folder / 'bin' / 'python'), '-m', 'venv']", "os.execv(sys.executable, words)",
        "asyncio.create_subprocess_exec(sys.executable, '-m', name)", "os.posix_spawn(python, words, {})",
        "subprocess.run(['git', 'status'])", "x = (project.interpreter, '-c', text)",
        "subprocess.run([str(base.interpreter.resolve()), '-m', 'venv'])", "['git', *words]",
    ],
)  # fmt: skip
def test_the_test_sees_each_way_to_start_one(start: str) -> None:
    assert list(past_the_door("trainyard/cli/up.py", ast.parse(start))), start


def test_texts_that_start_modules_of_python_isolate_it() -> None:
    """Recipes, workflows, images, and what pages and messages tell people to type."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    shown = [
        name
        for name in listing.splitlines()
        if not name.startswith(("tests/", "bench/", "docs/decisions/", "CHANGELOG"))
    ]
    module = re.compile(r"(?<!-I)(?<!-P) -m (?:pip|venv|compileall|ensurepip)\b")
    found = [
        f"{name}:{number}"
        for name in shown
        if name.endswith((".py", ".md", ".yml", ".yaml", ".sh", "Makefile", "Dockerfile"))
        for number, line in enumerate((ROOT / name).read_text("utf-8").splitlines(), 1)
        if module.search(line)
    ]
    assert found == []
