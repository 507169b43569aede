# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md names every top-level folder, and nothing that does not exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from catalog.platforms import platform_folder, platforms
from tests.support.capability_kinds import KINDS
from tools.borders import with_imports

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")


def test_every_path_of_the_page_exists() -> None:
    named = {*re.findall(r"`([a-z]+(?:/[\w.-]+)+/?)`", PAGE), *re.findall(r"\b(docs/[\w/-]+\.md)\b", PAGE)}
    assert len(named) > 30
    assert not [name for name in sorted(named) if not (ROOT / name).exists()]


def test_every_room_is_on_the_page() -> None:
    rooms = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["root_packages"]
    assert not [room for room in rooms if f"`{room}/" not in PAGE]


def test_every_platform_has_its_home() -> None:
    for name in platforms():
        assert (ROOT / "components" / platform_folder(name) / "section.schema.json").is_file()


def test_the_page_shows_the_imports_between_rooms() -> None:
    assert with_imports(PAGE) == PAGE, "an import is new or gone: read it, then `python -m tools.borders`"


def test_the_page_says_where_each_capability_is() -> None:
    """`client.runs.RUN_CLIENTS` is in `client/runs.py`, or in a folder of that name."""
    listed = re.findall(
        r"^\| `(\w+)` of (?:`[\w/.]+`|the same) \| `components/oci/([\w/]+)(?:\.py)?` \|", PAGE, re.MULTILINE
    )
    assert dict(listed) == {kind.__name__: kind.place.rpartition(".")[0].replace(".", "/") for kind in KINDS}
