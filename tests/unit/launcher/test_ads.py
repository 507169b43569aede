# SPDX-License-Identifier: Apache-2.0
"""Nodes with images of ADS: their variables, and which of their files in the bucket are trusted, for which rank."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from launcher.board import Board, Event
from launcher.board_client import ForeignNodes
from launcher.document import VARIABLE, read_launch
from launcher.errors import LaunchError
from launcher.object_store import Connection
from launcher.oci import identity
from launcher.oci.bucket import BucketFolder
from launcher.oci.identity import Ads
from launcher.oci.principal import Signer
from launcher.printing import LinePrinter
from launcher.stores import Open, Stored
from tests.support.documents import document, launch

NOW = 1_900_000_000.0
TOLD = {
    "TRAINYARD_ADS_PEERS": "1", "OCI__WORK_DIR": "oci://runs@space/work/", "OCI__CLUSTER_TYPE": "PYTORCH",
    "OCI__MODE": "WORKER", "JOB_OCID": "ocid1.job", "JOB_RUN_OCID": "ocid1.run.b",
}  # fmt: skip


class MemoryFolder(BucketFolder):
    """A folder whose objects lie in memory."""

    def __init__(self) -> None:
        connection = Connection("http://127.0.0.1:9", Signer({}), LinePrinter())
        super().__init__("oci://runs@space/work/ocid1.job", connection)
        self.objects: dict[str, tuple[bytes, float]] = {}

    def list(self, below: str) -> list[Stored]:
        names = sorted(name for name in self.objects if name.startswith(below))
        return [Stored(name, _text(self.objects[name][1]), 2, str(self.objects[name])) for name in names]

    def get(self, name: str) -> bytes | None:
        return self.objects[name][0] if name in self.objects else None

    def lay(self, name: str, content: Any, at: float = NOW) -> None:
        self.objects[name] = (content if isinstance(content, bytes) else json.dumps(content).encode(), at)


def _text(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def told(number: int = 1, **changes: str) -> Ads:
    shelf = MemoryFolder()
    found = exchange(number, lambda uri: _same(uri, shelf), {**TOLD, **changes})
    assert isinstance(found, Ads)
    return found


def exchange(
    number: int, open_folder: Open, environment: Mapping[str, str], source: str = "bucket"
) -> ForeignNodes | None:
    """The search of a node with this environment for nodes with images of ADS."""
    text = json.dumps(document(number, peers={"from": source}))
    made = read_launch({VARIABLE: text, **environment})
    return made.identity.foreign_nodes(made, open_folder)


def _same(uri: str, shelf: MemoryFolder) -> MemoryFolder:
    assert uri == shelf.uri
    return shelf


def shelf_of(found: Ads) -> MemoryFolder:
    assert isinstance(found.folder, MemoryFolder)
    return found.folder


def here(rank: int) -> Event:
    return Event(0, rank, f"nonce-{rank}", NOW, address=f"10.0.0.{rank}")


@pytest.mark.parametrize(
    ("cluster", "mode", "name", "content"),
    [
        ("PYTORCH", "MAIN", "MAIN_config.json", {"MASTER_ADDR": "10.0.0.9"}),
        ("PYTORCH", "WORKER", "WORKER_ocid1.run.b_config.json", {"OCI__WORKER_IP": "10.0.0.9"}),
        (
            "DASK", "MAIN", "MAIN_config.json",
            {"OCI__MAIN_IP": "10.0.0.9", "SCHEDULER_IP": "10.0.0.9", "tmpdir": "oci://runs@space/work/ocid1.job"},
        ),
        (
            "DASK", "WORKER", "WORKER_ocid1.run.b_config.json",
            {"OCI__WORKER_IP": "10.0.0.9", "tmpdir": "oci://runs@space/work/ocid1.job"},
        ),
    ],
)  # fmt: skip
def test_a_node_announces_itself_as_ads_does(cluster: str, mode: str, name: str, content: dict[str, str]) -> None:
    found = told(OCI__CLUSTER_TYPE=cluster, OCI__MODE=mode)
    assert found.announcement("10.0.0.9") == (name, content)


def test_ads_nodes_get_the_free_ranks() -> None:
    found = told(1)
    shelf = shelf_of(found)
    shelf.lay("MAIN_config.json", {"MASTER_ADDR": "10.0.1.1"})
    shelf.lay("WORKER_ocid1.run.a_config.json", {"OCI__WORKER_IP": "10.0.1.2"})
    shelf.lay("WORKER_ocid1.run.b_config.json", {"OCI__WORKER_IP": "10.0.0.1"})  # this node's own
    signs = found.events({1: here(1)}, NOW)
    assert {sign.rank: sign.address for sign in signs} == {0: "10.0.1.1", 2: "10.0.1.2"}
    assert found.members == {0, 2}
    arrived = Board((here(1), *signs), NOW).arrived(0)
    assert {rank: event.address for rank, event in arrived.items()} == {0: "10.0.1.1", 1: "10.0.0.1", 2: "10.0.1.2"}
    assert Board((here(1), *signs), NOW).arrived(1) == {}


def test_our_own_nodes_are_not_counted_twice() -> None:
    found = told(1)
    shelf = shelf_of(found)
    shelf.lay("MAIN_config.json", {"MASTER_ADDR": "10.0.0.0"})
    shelf.lay("WORKER_ocid1.run.b_config.json", {"OCI__WORKER_IP": "10.0.0.1"})
    assert found.events({0: here(0), 1: here(1)}, NOW) == []


def test_old_unfinished_and_foreign_files_are_skipped() -> None:
    found = told(1)
    shelf = shelf_of(found)
    shelf.lay("MAIN_config.json", {"MASTER_ADDR": "10.0.1.1"}, NOW - 1801)
    shelf.lay("WORKER_a_config.json", b"")
    shelf.lay("WORKER_b_config.json", b"[1]")
    shelf.lay("WORKER_c_config.json", {"address": "10.0.1.4"})
    shelf.lay("PS_d_config.json", {"OCI__WORKER_IP": "10.0.1.5"})
    shelf.lay("sync/WORKER_e_config.json", {"OCI__WORKER_IP": "10.0.1.6"})
    assert found.events({1: here(1)}, NOW) == []
    shelf.lay("MAIN_config.json", {"MASTER_ADDR": "10.0.1.1"}, NOW - 1700)
    shelf.lay("WORKER_a_config.json", {"OCI__WORKER_IP": "10.0.1.2"})
    assert {sign.rank: sign.address for sign in found.events({1: here(1)}, NOW)} == {0: "10.0.1.1", 2: "10.0.1.2"}


def test_stop_ends_ads_nodes_and_an_old_one_is_reported() -> None:
    found = told(1)
    shelf = shelf_of(found)
    shelf.lay("MAIN_config.json", {"MASTER_ADDR": "10.0.1.1"})
    assert [sign.how for sign in found.events({1: here(1)}, NOW)] == [""]
    shelf.lay(identity.STOP, b"stop")
    signs = found.events({1: here(1)}, NOW)
    assert [(final.rank, final.succeeded) for final in Board((here(1), *signs), NOW).finals(launch())] == [(0, True)]
    late = told(1)
    late.folder = shelf
    with pytest.raises(LaunchError, match=r"holds `stop`.* Remove that folder"):
        late.events({1: here(1)}, NOW)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"OCI__CLUSTER_TYPE": "HOROVOD"}, "DASK and PYTORCH only, not as WORKER of HOROVOD"),
        ({"OCI__MODE": "PS"}, "not as PS of PYTORCH"),
        ({"JOB_OCID": ""}, "but JOB_OCID not set"),
    ],
)
def test_unsupported_combinations_are_refused(changes: dict[str, str], why: str) -> None:
    with pytest.raises(LaunchError, match=why):
        exchange(1, lambda _: MemoryFolder(), {**TOLD, **changes})
    with pytest.raises(LaunchError, match="peers come from cluster-metadata"):
        exchange(1, lambda _: MemoryFolder(), TOLD, "cluster-metadata")


def test_ads_nodes_are_only_searched_if_the_variable_is_set() -> None:
    assert exchange(1, lambda _: MemoryFolder(), {**TOLD, "TRAINYARD_ADS_PEERS": "0"}) is None
    assert exchange(1, lambda _: MemoryFolder(), {}) is None
