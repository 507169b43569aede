# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.borders`: writes the column `imports` of docs/architecture.md.

It lists the rooms that each room imports anywhere, also inside of functions, as import-linter sees it. The contracts in
pyproject.toml let all of them through, or `make check` fails.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import grimp

from catalog.platforms import platform_folder, platforms

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
_ROW = re.compile(r"^\| (?P<rooms>`[^|]*`) \| (?P<purpose>[^|]*) \| (?P<imports>[^|]*) \|$", re.MULTILINE)
_HEADING = "| room | what it does | it imports |"
_PLATFORM = "<platform>"
# Rooms of which others need single modules only: few of them are named, more are too many to name.
_OF_SINGLE_MODULES, _FEW = ("launcher", "policies"), 2


def with_imports(page: str) -> str:
    """The page with the column made again. Rooms that import-linter does not read keep their text."""
    table = page[page.index(_HEADING) :].partition("\n\n")[0]
    rows = {room: row["rooms"] for row in _ROW.finditer(table) for room in _rooms_in_cell(row["rooms"])}
    imported = _imports_by_room(rows)

    def renewed(row: re.Match[str]) -> str:
        cell = _imports_cell(imported[row["rooms"]], list(rows)) if row["rooms"] in imported else row["imports"]
        return f"| {row['rooms']} | {row['purpose']} | {cell} |"

    return page.replace(table, _ROW.sub(renewed, table))


def _rooms_in_cell(cell: str) -> Iterator[str]:
    """The rooms of a cell as modules: `components/<platform>/` is one for each platform."""
    for path in re.findall(r"`([^`]+)`", cell):
        module = path.removesuffix("/").removesuffix(".py").replace("/", ".")
        folders = sorted(map(platform_folder, platforms())) if _PLATFORM in module else [""]
        yield from (module.replace(_PLATFORM, folder) for folder in folders)


def _imports_by_room(rows: Mapping[str, str]) -> dict[str, dict[str, set[str]]]:
    """By row of the table: the modules of other rows that it imports, by their room."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*packages)
    imported: dict[str, dict[str, set[str]]] = {}
    for module in graph.modules:
        if (row := rows.get(_room_of(module, rows))) is None:
            continue
        into = imported.setdefault(row, {})
        for target in graph.find_modules_directly_imported_by(module):
            room = _room_of(target, rows)
            if rows.get(room) != row:
                into.setdefault(room, set()).add(target)
    return imported


def _room_of(module: str, rooms: Iterable[str]) -> str:
    """The longest room that the module is in. A module that is in no row of the page is one of its own."""
    return max((room for room in rooms if module == room or module.startswith(f"{room}.")), key=len, default=module)


def _imports_cell(targets: Mapping[str, set[str]], order: Sequence[str]) -> str:
    homes = {f"components.{platform_folder(name)}" for name in platforms()}
    shown: dict[str, None] = {}
    for room in sorted(targets, key=lambda room: (order.index(room) if room in order else len(order), room)):
        modules = sorted(targets[room])
        if room in homes:
            # Of a platform's home its rooms: `components/<platform>/client`.
            parts = [".".join(["components", _PLATFORM, *module.split(".")[2:3]]) for module in modules]
        elif room in _OF_SINGLE_MODULES and len(modules) <= _FEW:
            parts = modules
        else:
            parts = [room]
        shown.update(dict.fromkeys(parts))
    paths = [name.replace(".", "/") for name in shown]
    files = [f"{path}.py" if (ROOT / f"{path}.py").is_file() else path for path in paths]
    return ", ".join(f"`{file}`" for file in files) or "nothing of ours"


def main() -> None:
    page = PAGE.read_text("utf-8")
    PAGE.write_text(with_imports(page), "utf-8")


if __name__ == "__main__":
    main()
