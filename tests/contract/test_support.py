# SPDX-License-Identifier: Apache-2.0
"""What several folders of tests share is in tests/support. Test folders and benchmarks import that, not each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = "tests.support"
NOT_OURS = ("third_party", "broken")


@cache
def _imports(file: Path) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
    return tuple(found)


def _modules(folder: str) -> Iterator[Path]:
    yield from (file for file in (ROOT / folder).rglob("*.py") if not set(NOT_OURS) & set(file.parts))


def _strays(file: Path, *own: str) -> list[str]:
    """Imports of test modules that are neither in tests/support nor in the module's own folder."""
    allowed = tuple(f"{name}." for name in (SUPPORT, *own))
    tests = [name for name in _imports(file) if name.split(".")[0] == "tests"]
    return [f"{file.relative_to(ROOT)}: {name}" for name in tests if not name.startswith(allowed)]


def test_benchmarks_use_the_shared_test_worlds_only() -> None:
    assert [stray for file in _modules("bench") for stray in _strays(file)] == []


def test_shared_test_worlds_use_no_tests() -> None:
    assert [stray for file in _modules("tests/support") for stray in _strays(file)] == []


def test_folders_of_tests_share_through_support_only() -> None:
    """A folder may use its own modules: tests/flows/hosts is part of tests/flows."""
    folders = [path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "support"]
    assert "unit" in folders
    strays = [
        stray for name in folders for file in _modules(f"tests/{name}") for stray in _strays(file, f"tests.{name}")
    ]
    assert strays == []


def test_no_test_module_imports_another() -> None:
    """Code that two test modules need is in a module beside them, or in tests/support, so that no test module imports
    another."""
    imports = [(file, name) for folder in ("tests", "bench") for file in _modules(folder) for name in _imports(file)]
    of_tests = [(file, name.split(".")) for file, name in imports if name.startswith("tests.")]
    assert [str(file) for file, parts in of_tests if any(part.startswith("test_") for part in parts[:-1])] == []
