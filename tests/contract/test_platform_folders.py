# SPDX-License-Identifier: Apache-2.0
"""A room's own modules name no platform: what is true of one alone lies in a folder of its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.platforms import platform_folder, platforms

ROOT = Path(__file__).parents[2]
ROOMS = ("images", "localstacks", "rehearsing", "runstatus")
FOLDERS = {platform_folder(name) for name in platforms()}
NAMES = re.compile(r"\boci|oracle|\bocir\b|tenancy|compartment|dynamic.group|\baws\b|amazon|openpai", re.IGNORECASE)


def own_modules(room: str) -> Iterator[Path]:
    for path in sorted((ROOT / room).rglob("*.py")):
        if not FOLDERS & set(path.relative_to(ROOT).parts):
            yield path


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_own_modules_name_no_platform(room: str) -> None:
    named = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in own_modules(room)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if NAMES.search(line)
    ]
    assert named == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_own_modules_import_no_platforms_folder(room: str) -> None:
    imported = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in own_modules(room)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and FOLDERS & {part for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names))
                       for part in name.split(".")}
    ]  # fmt: skip
    assert imported == []


def test_each_room_has_modules_of_its_own_and_a_platforms_folder() -> None:
    for room in ROOMS:
        assert list(own_modules(room)), room
        assert any((ROOT / room / folder).is_dir() for folder in FOLDERS), room
