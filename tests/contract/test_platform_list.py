# SPDX-License-Identifier: Apache-2.0
"""The platforms are one list, catalog/platforms.toml, and one function leads to each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.platforms import (
    Capability,
    Lacks,
    find_capability,
    platform_folder,
    platforms,
    platforms_with,
    require_capability,
)
from catalog.tables import table
from components.plan.platform import Deployment
from components.platform.client import RunClients, UnknownPlaceError
from components.platform.existing import ExistingResources
from components.platform.owned import OwnedResources
from components.platform.review import OfflineCloud
from localcloud.clients import platform_clients
from localcloud.server_part import MainServerPart, server_parts
from schemas.stack_file import StackFile
from tests.support.capability_kinds import KINDS
from tools.import_contracts import with_platforms
from trainyard.engine.tools import stand_ins

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("catalog", "components", "launcher", "localcloud", "policies", "provider", "schemas", "tools", "trainyard")
# By platform: its name, the folder of its home, and the name of its home on nodes.
NAMES = {name: {name, platform_folder(name), name.replace("-", "_")} for name in platforms()}
ALLOWED = {
    # The launcher ships without the catalog.
    "launcher/platforms.py",
    # The cloud's own operations are signed as those of its first platform.
    "localcloud/admin.py",
    # A heading of the changelog.
    "tools/release/news.py",
}


def names_in(source: str, names: set[str]) -> Iterator[str]:
    """These names of platforms in a module: as a text of their own, wherever it stands (in a list, as a key, in a
    comparison, in a case), or by an import of a local home. In examples of policies, a run's `platform` is data."""
    if not re.search(rf"[\"'.](?:{'|'.join(names)})\b", source):
        return  # most modules, which need not be parsed
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    examples = [
        call for call in calls if ast.unparse(call.func) in ("JudgedResource", "_run_of_nodes", "_run_on_cluster")
    ]
    data: set[ast.AST] = {one.value for call in examples for one in call.keywords if one.arg == "platform"}
    for inner in (inner for call in examples for inner in ast.walk(call) if isinstance(inner, ast.Dict)):
        data |= {value for key, value in zip(inner.keys, inner.values, strict=True)
                 if isinstance(key, ast.Constant) and key.value == "platform"}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in data and node.value in names:
            yield str(node.value)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
            words = [module.split(".") for module in modules if module.startswith("localcloud.")]
            yield from names & {word[1] for word in words}


def test_outside_of_its_homes_no_module_names_a_platform() -> None:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 500
    named = {}
    for file in files:
        path = str(file.relative_to(ROOT))
        others = [names for names in NAMES.values() if Path(path).with_suffix("").parts[1] not in names]
        if found := {*names_in(file.read_text("utf-8"), set().union(*others))}:
            named[path] = found
    assert {path: found for path, found in named.items() if path not in ALLOWED} == {}
    assert named.keys() >= ALLOWED


def test_a_name_is_seen_wherever_it_stands() -> None:
    for source in ('a = {"oci": 1}', 'a in ("oci", "b")', 'if a == "oci": b', 'match a:\n  case "oci": b',
                   'f(oci="oci")', "from localcloud.oci import tenancy", "import localcloud.oci.tenancy"):  # fmt: skip
        assert [*names_in(source, {"oci"})] == ["oci"], source
    assert not [*names_in('JudgedResource(RUN, {"platform": "oci"}); import oci; "of oci"', {"oci"})]


# By kind, the platforms that lack it. Every other platform has it.
LACKING: dict[type[Capability], set[str]] = {
    ExistingResources: {"openpai"}, OfflineCloud: {"openpai"}, OwnedResources: {"openpai"},
}  # fmt: skip


# Its modules import the clouds' SDKs, which takes seconds. tests/programs run them.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Deployment])
def test_a_platform_has_a_capability_or_the_reason(kind: type[Capability]) -> None:
    for name in platforms():
        found = find_capability(name, kind)
        assert isinstance(found, Lacks if name in LACKING.get(kind, ()) else kind)
        assert (name in platforms_with(kind)) is isinstance(found, kind)
    assert kind.lacking.count("{platform}") == 1


def test_a_platform_deploys_if_its_row_says_so() -> None:
    assert platforms_with(Deployment) == tuple(name for name, row in platforms().items() if row.deploys)


def test_a_name_that_no_platform_has_lacks_everything() -> None:
    assert find_capability("fifth", RunClients) == Lacks(
        "the stack runs on fifth: `trainyard runs` cannot show runs there yet"
    )
    with pytest.raises(UnknownPlaceError, match="the stack runs on fifth: "):
        require_capability("fifth", RunClients)


def test_an_instance_of_another_kind_is_found_out() -> None:
    class Other(Capability):
        place = StackFile.place

    with pytest.raises(TypeError, match=r"components.oci.stack.STACK_FILE is not of the kind .*Other"):
        find_capability("oci", Other)


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
