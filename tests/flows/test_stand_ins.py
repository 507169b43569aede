# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for existing resources: for all examples on one cloud, in any order; each is made once and can be
removed."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest
import yaml

from components.oci.client.session import Session
from components.oci.local.stacks import OciLocalPlatform, stand_in
from components.oci.local.stand_ins import StandIns
from localcloud.control import Cloud
from tests.support.counts import FIRST, wanted
from tests.support.examples import EXAMPLES, STACKS, plan, stack_file
from tests.support.local_team import NOT_MADE
from trainyard.local.localize import localize_config

OCI = [name for name in EXAMPLES if name.startswith("oci-")]
SUBNET = "ocid1.subnet.oc1.iad.aaaaaaaaanotherteams"


def stood_in(cloud: Cloud, name: str, subnet: str = "") -> None:
    """The first step of `up`, before Pulumi starts. `subnet`: for a stack in another network."""
    config = yaml.safe_load(stack_file(name).read_text())["config"]
    if subnet:
        config["trainyard:network"]["subnet"] = subnet
    known = plan(name)
    stand_ins = StandIns(cloud, print, known.network)
    localize_config(config, known, lambda file: stand_in(file, known, cloud, stand_ins), STACKS)


def made(cloud: Cloud) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(f"file:{cloud.home / 'state.sqlite3'}?mode=ro", uri=True)) as state:
        rows = state.execute("SELECT kind, name, id FROM resources WHERE live = 1 ORDER BY sequence").fetchall()
    return [row for row in rows if row[0] not in NOT_MADE]


@pytest.mark.parametrize("number", range(wanted(2, 20)))
def test_examples_share_a_cloud_in_any_order(cloud: Cloud, number: int) -> None:
    chance = random.Random(FIRST + number)
    before = made(cloud)
    for name in chance.sample(OCI, len(OCI)):
        stood_in(cloud, name)
        stood_in(cloud, name)
    stood_in(cloud, "oci-existing", SUBNET)
    once = made(cloud)
    for name in chance.sample(OCI, len(OCI)):
        stood_in(cloud, name)
    assert made(cloud) == once
    core = Session.of({}, cloud.env).client("core")
    subnets = [core.get_subnet(row[2]).data for row in once if row[0] == "subnet"]
    assert len(subnets) == 2
    for subnet in subnets:  # Each reaches Oracle's services through a gateway of its own VCN.
        rule, *_ = core.get_route_table(subnet.route_table_id).data.route_rules
        assert core.get_service_gateway(rule.network_entity_id).data.vcn_id == subnet.vcn_id
    _remove(cloud)
    assert made(cloud) == before


def test_a_bucket_that_stands_in_stays_while_results_are_in_it(cloud: Cloud) -> None:
    stood_in(cloud, "oci-existing")
    storage, place = Session.of({}, cloud.env).client("object_storage"), (cloud.namespace, "risk-models")
    storage.put_object(*place, "scores/base/result.json", b"{}")
    for _ in range(2):
        _remove(cloud, with_data=False)
        assert [row[:2] for row in made(cloud)] == [("bucket", "risk-models")]
    stood_in(cloud, "oci-existing")
    assert storage.get_object(*place, "scores/base/result.json").data.content == b"{}"
    _remove(cloud)
    assert made(cloud) == []


def _remove(cloud: Cloud, with_data: bool = True) -> None:
    OciLocalPlatform().remove_stand_ins(cloud, print, with_data)
