# SPDX-License-Identifier: Apache-2.0
"""The launcher runs on Python 3.7, which the machines that test it do not have. `make check` finds newer syntax and
modules; this finds what only the types of values show."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).parents[3] / "launcher"
_DICTS = (ast.Dict, ast.DictComp)


def merges_of_dicts(tree: ast.Module) -> Iterator[int]:
    """The lines where a dict, or a name to which one is assigned, is merged with an operator."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        dicts = set[str]()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, _DICTS):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                dicts |= {target.id for target in targets if isinstance(target, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.AugAssign | ast.BinOp) and isinstance(node.op, ast.BitOr):
                sides = (node.target, node.value) if isinstance(node, ast.AugAssign) else (node.left, node.right)
                if any(isinstance(side, _DICTS) or getattr(side, "id", "") in dicts for side in sides):
                    yield node.lineno


@pytest.mark.parametrize("line", ["made |= other", "made = made | other", "return other | {'a': 1}"])
def test_a_merge_is_found(line: str) -> None:
    assert list(merges_of_dicts(ast.parse(f"def merge(other):\n    made = {{}}\n    {line}\n"))) == [3]


def test_no_dicts_are_merged_with_an_operator() -> None:
    """Python 3.9 brought `|` of dicts."""
    found = {
        f"{file.relative_to(LAUNCHER)}:{line}"
        for file in LAUNCHER.rglob("*.py")
        for line in merges_of_dicts(ast.parse(file.read_text("utf-8")))
    }
    assert not found
