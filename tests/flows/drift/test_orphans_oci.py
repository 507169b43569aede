# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift --orphans` on OCI names exactly what a killed `up` left, and removes that and nothing else.

The oracle is the local cloud's own table, not Search.
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

import oci
import pytest

from components.oci.client.session import USER
from tests.support.cloud_fixture import Clients
from tests.support.counts import FIRST, wanted
from tests.support.local_team import Team
from tests.support.orphaning import Orphanage

pytestmark = pytest.mark.engine

# The state of a whole `up` has about so many resources.
_MOST_ROWS = 26
_JOB_RUN = "oci:DataScience/jobRun:JobRun"
_VCN, _SUBNET = "oci:Core/vcn:Vcn", "oci:Core/subnet:Subnet"


@pytest.fixture
def orphanage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orphanage]:
    team = Team(tmp_path_factory.mktemp("orphans"))
    try:
        yield Orphanage(team, "local")
    finally:
        team.end()


def _tags(stack: str, **more: str) -> dict[str, str]:
    return {"managed-by": "trainyard", "stack": stack, "team": "demo", "environment": "local", **more}


def _make_vcn(orphanage: Orphanage, name: str, tags: Mapping[str, str], compartment: str = "") -> str:
    cloud = orphanage.team.cloud
    details = oci.core.models.CreateVcnDetails(
        compartment_id=compartment or cloud.compartment, cidr_block="10.9.0.0/16", display_name=name,
        freeform_tags=dict(tags),
    )  # fmt: skip
    return str(Clients(cloud).network.create_vcn(details).data.id)


def _in_the_table(orphanage: Orphanage, stack: str) -> dict[str, str]:
    """Id and kind of everything with the stack's tag that exists. A job's runs are part of it once they have ended, and
    they may end at any moment."""
    file = orphanage.team.home / "cloud" / "state.sqlite3"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as state:
        rows = state.execute(
            "SELECT id, kind, name FROM resources WHERE live AND kind != 'job-run'"
            " AND json_extract(body, '$.freeformTags.\"managed-by\"') = 'trainyard'"
            " AND json_extract(body, '$.freeformTags.stack') = ?",
            (stack,),
        ).fetchall()
    return {f"n/trainyardlocal/b/{name}" if kind == "bucket" else ocid: kind for ocid, kind, name in rows}


def test_what_a_killed_up_left_is_named_and_removed_and_nothing_else(orphanage: Orphanage) -> None:
    seed = int(os.environ.get("TRAINYARD_SEED") or FIRST or 1)
    # It begins with another stack's resources, which its state has, and a stranger's, which lack a tag.
    others = _make_vcn(orphanage, "others", _tags("other"))
    strangers = _make_vcn(orphanage, "strangers", {"managed-by": "trainyard", "stack": "local"})
    for chance in (random.Random(seed + number) for number in range(wanted(1, 20))):
        orphanage.kill_up_after(chance.randint(12, _MOST_ROWS))
        orphanage.write_state("other", [{"type": _VCN, "id": others}])
        orphanage.wait_until_still(lambda: _in_the_table(orphanage, "local"))
        left = _in_the_table(orphanage, "local")
        assert left.keys() > {strangers}
        code, found, _ = orphanage.orphans("local")
        named = {ocid for ocid, one in found.items() if one["type"] != _JOB_RUN}
        assert (code, named - set(left), set(left) - named) == (1, set(), set()), left
        assert {one["stack"] for one in found.values()} == {"local"}
        assert all(one["since"] and one["owner"] == "demo" for one in found.values() if one["id"] != strangers)

        code, found, said = orphanage.orphans("local", "--remove", "--yes")
        assert code == 1, said
        kept = {ocid for ocid, one in found.items() if not one["removed"]}
        assert set(_in_the_table(orphanage, "local")) == kept
        # A run that had begun may have written data.
        holding = {ocid: one for ocid, one in found.items() if ocid in kept - {strangers}}
        assert all("--delete-data" in one["stays"] for one in holding.values()), holding
        assert {left[ocid] for ocid in holding} <= {"bucket", "container-repository"}
        code, found, said = orphanage.orphans("local", "--remove", "--yes", "--delete-data")
        assert (code, set(_in_the_table(orphanage, "local"))) == (1, {strangers}), said
        assert "team and environment" in found[strangers]["stays"]
        assert set(_in_the_table(orphanage, "other")) == {others}


def test_what_a_state_has_or_names_is_never_taken(orphanage: Orphanage) -> None:
    cloud = orphanage.team.cloud
    ours, theirs, used = (_make_vcn(orphanage, name, _tags("twice")) for name in ("ours", "theirs", "used"))
    elsewhere = _make_vcn(orphanage, "elsewhere", _tags("twice"), cloud.tenancy)
    # Two stacks of the same name in two compartments: one state is at hand. Another stack uses an orphan's network.
    orphanage.write_state("twice", [{"type": _VCN, "id": ours}])
    borrower = {"type": _SUBNET, "id": "ocid1.subnet.oc1.iad.borrowed", "inputs": {"vcnId": used}}
    orphanage.write_state("borrower", [borrower])
    code, found, _ = orphanage.orphans()
    assert (code, set(found)) == (1, {theirs, used, elsewhere})
    assert "the stack borrower names it" in found[used]["stays"]
    code, found, _ = orphanage.orphans("--place", cloud.tenancy)
    assert set(found) == {elsewhere}
    code, found, _ = orphanage.orphans("--known", "stack twice")
    assert (code, found) == (0, {})

    # A list that nobody looks at has to name its stack, and a state that cannot be read protects everything.
    code, _, said = orphanage.orphans("--remove", "--yes")
    assert code == 2
    assert "--yes needs STACK" in said
    (orphanage.states / "broken.json").write_text('["no state"')
    code, _, said = orphanage.orphans("twice", "--remove", "--yes")
    assert code == 2
    assert "what an unread state has is not known" in said
    (orphanage.states / "broken.json").unlink()
    assert set(_in_the_table(orphanage, "twice")) == {ours, theirs, used, elsewhere}
    code, _, said = orphanage.orphans("twice", "--remove", "--yes")
    assert code == 1, said
    assert set(_in_the_table(orphanage, "twice")) == {ours, used}


def test_a_caller_who_may_not_list_is_told_so(orphanage: Orphanage) -> None:
    hidden = _make_vcn(orphanage, "hidden", _tags("local"))
    code, found, said = orphanage.orphans("local", "--profile", USER)
    assert (code, found) == (2, {})
    assert "VCN" in said
    assert "may not list them" in said
    assert orphanage.orphans("local", "--profile", USER, "--partial")[0] == 0
    assert set(_in_the_table(orphanage, "local")) == {hidden}


@pytest.mark.torture
def test_two_thousand_orphans_are_named_and_removed(orphanage: Orphanage) -> None:
    many = {_make_vcn(orphanage, f"vcn-{number}", _tags("many")) for number in range(2000)}
    code, found, _ = orphanage.orphans("many")
    assert (code, set(found)) == (1, many)
    code, _, said = orphanage.orphans("many", "--remove", "--yes")
    assert (code, _in_the_table(orphanage, "many")) == (0, {}), said
