# SPDX-License-Identifier: Apache-2.0
"""Reviews of real programs: no rendezvous hangs, everything can be read, and changes are described in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from catalog.platforms import require_capability
from components.platform.review import UNREAD, ReviewPlatform, Snapshot
from tests.programs.conftest import Record, Written
from tests.support.examples import stack_file
from tests.support.reviews import recorded, sentences
from trainyard.review import reach
from trainyard.review.reach import is_outside, passage_words
from trainyard.review.rendezvous import find_hanging_connections

EXAMPLES = {
    "oci-pytorch-ddp": True,
    "oci-documented": True,
    "oci-proof-of-concept": True,
    "oci-existing": False,
    "oci-dask-xgboost": True,
    "aws-dl1-resnet": True,
    "aws-dl1-existing-vpc": False,
    "openpai-ddp-gloo": False,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_connection_of_an_example_is_allowed(name: str, record: Record) -> None:
    side = recorded(record(name), stack_file(name))
    answers = require_capability(side.platform, ReviewPlatform)
    network = answers.network(side)
    assert bool(network.unjudged) is not EXAMPLES[name]
    assert find_hanging_connections(side, network) == ()
    assert bool(network.nodes) is EXAMPLES[name]
    (abilities,) = answers.abilities((side,))
    assert not [one for one in abilities if one.principal == UNREAD]
    assert set(answers.costs(side, {}).jobs) == set(side.plan["jobs"])
    assert not [one for one in network.passages if one.direction == "ingress" and is_outside(one, network)]
    assert all(not answers.replacing_inputs(one, one) for one in side.resources)


def test_a_preview_without_ids_allows_the_same(record: Record) -> None:
    known, unknown = (
        recorded(record("oci-pytorch-ddp", **how), stack_file("oci-pytorch-ddp")) for how in ({}, {"preview": True})
    )
    answers = require_capability("oci", ReviewPlatform)
    found = reach.compare_networks(answers.network(known), answers.network(unknown))
    assert (found.opened, found.closed) == ((), ())


def _sides(name: str, change: Callable[[dict[str, Any]], None], record: Record, written: Written) -> list[Snapshot]:
    return [recorded(one, stack_file(name)) for one in (record(name), written(name, change))]


def test_a_changed_oci_stack_file_is_described_in_words(record: Record, changed: Written) -> None:
    def open_up(config: dict[str, Any]) -> None:
        config["trainyard:network"] = {**config.get("trainyard:network", {}), "mode": "proof-of-concept", "nat": True}
        config["trainyard:access"] = {**config.get("trainyard:access", {}), "mode": "documented"}

    before, after = _sides("oci-pytorch-ddp", open_up, record, changed)
    answers = require_capability("oci", ReviewPlatform)
    found = reach.compare_networks(answers.network(before), answers.network(after))
    block = after.plan["network"]["subnetCidr"]
    outside = [one for one in map(passage_words, found.opened) if "anywhere" in one]
    assert outside == [f"every TCP port out of the subnet, to anywhere (0.0.0.0/0) but {block}"]
    assert found.ways_opened == ("the subnet: to 0.0.0.0/0 through a NAT gateway",)
    assert sentences(before, after)
    assert sentences(before, before) == []


def test_a_changed_aws_stack_file_is_described_in_words(record: Record, changed: Written) -> None:
    def open_up(config: dict[str, Any]) -> None:
        rule = {"cidr": "203.0.113.0/24", "ports": 3022, "why": "SSH from the office"}
        config["trainyard:network"] = {**config.get("trainyard:network", {}), "ingress": [rule]}
        config["trainyard:access"] = {**config.get("trainyard:access", {}), "mode": "documented"}

    before, after = _sides("aws-dl1-resnet", open_up, record, changed)
    answers = require_capability("aws-dl1", ReviewPlatform)
    found = reach.compare_networks(answers.network(before), answers.network(after))
    assert list(map(passage_words, found.opened)) == ["TCP 3022 into the nodes, from 203.0.113.0/24"]
    assert any("do whatever the policy AmazonS3FullAccess allows" in one for one in sentences(before, after))
