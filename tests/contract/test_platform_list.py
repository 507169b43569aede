# SPDX-License-Identifier: Apache-2.0
"""The platforms are one list, catalog/platforms.toml, and one function leads to each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.platforms import find_platform, platform_folder, platforms
from catalog.tables import table
from components.plan.platform import Platform as PlanPlatform
from components.platform.base import Platform, PlatformServices
from localcloud.clients import platform_clients
from localcloud.server_part import MainServerPart, server_parts
from schemas.stack_file import StackFile
from tools.import_contracts import with_platforms
from trainyard.engine.tools import stand_ins

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("catalog", "components", "launcher", "localcloud", "policies", "provider", "schemas", "tools", "trainyard")
# A platform's name, the folder of its home, and the name of its home on nodes.
NAMES = {one for name in platforms() for one in (name, platform_folder(name), name.replace("-", "_"))}


def lists_of_names(source: str) -> Iterator[str]:
    """The literals of a module that name several platforms."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            items: list[ast.expr | None] = [*node.elts]
        elif isinstance(node, ast.Dict):
            items = [*node.keys]
        else:
            continue
        texts = {item.value for item in items if isinstance(item, ast.Constant)}
        if len(texts & NAMES) > 1:
            yield f"{node.lineno}: {ast.unparse(node)[:100]}"


def test_no_other_list_names_platforms() -> None:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 500
    lists = {str(file.relative_to(ROOT)): [*lists_of_names(file.read_text("utf-8"))] for file in files}
    assert {name: found for name, found in lists.items() if found} == {}
    assert [*lists_of_names('{"oci": 1, "aws": 2}\n("oci", "other")\n["openpai", "aws-dl1"]')] == [
        "1: {'oci': 1, 'aws': 2}",
        "3: ['openpai', 'aws-dl1']",
    ]


@pytest.mark.parametrize("name", platforms())
def test_each_layer_finds_a_platform_as_what_it_needs(name: str) -> None:
    layers: list[type[object]] = [StackFile, PlanPlatform, Platform]
    assert len({id(find_platform(name, layer)) for layer in layers}) == 1
    with pytest.raises(TypeError, match=f"PLATFORM of {name} is not a Path"):
        find_platform(name, Path)


def test_a_name_that_no_platform_has_gives_what_the_caller_makes_of_it() -> None:
    assert find_platform("fifth", PlatformServices, PlatformServices).name == "fifth"
    with pytest.raises(KeyError, match="fifth"):
        find_platform("fifth", Platform)


def test_a_row_has_known_columns_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [row.home for row in platforms().values()] == [
        row.get("home", name) for name, row in table("platforms").items()
    ]
    row = {"summary": "", "deploys": True, "lack": {}}
    monkeypatch.setattr("catalog.platforms.table", lambda name: {**table(name), "fifth": row})
    with pytest.raises(TypeError, match="lack"):
        platforms.__wrapped__()


def test_local_clouds_plugins_and_contracts_follow_from_the_homes() -> None:
    homes = [platform_folder(name) for name in platforms()]
    local_homes = [f"localcloud.{home}" for home in homes if (ROOT / "localcloud" / home).is_dir()]
    assert len([*platform_clients()]) == len(local_homes)
    parts = [*server_parts()]
    assert [part.__module__ for part in parts] == [f"{home}.server_part" for home in local_homes]
    assert [part for part in parts if issubclass(part, MainServerPart)] == parts[:1]
    assert {one.provider for one in stand_ins()} == {
        home for home in homes if (ROOT / "localcloud" / home / "plugin").is_dir()
    }
    contract = with_platforms({"layers": ["components.{platform}", "schemas"], "modules": ["launcher.{platform}"]})
    assert contract["layers"] == [" | ".join(f"components.{home}" for home in homes), "schemas"]
    assert contract["modules"] == ["launcher.oci", "launcher.aws_dl1", "launcher.openpai"]
