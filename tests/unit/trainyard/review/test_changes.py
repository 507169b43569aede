# SPDX-License-Identifier: Apache-2.0
"""What a change does to each resource, and why."""

from __future__ import annotations

from typing import Any

import pytest

from components.platform.review import SECRET, Loss
from tests.support.review_samples import Table, resource, side
from trainyard.review.changes import compare_snapshots, forecast_destroy

VCN, SUBNET, JOB = "oci:Core/vcn:Vcn", "oci:Core/subnet:Subnet", "oci:DataScience/job:Job"
RUN = "trainyard:index:Run"
PLATFORM = Table({VCN: ["cidr"], SUBNET: ["vcnId"]}, {VCN: Loss("the network")})


def kinds(before: Any, after: Any) -> dict[str, str]:
    return {one.name: one.kind for one in compare_snapshots(before, after, PLATFORM)}


def test_what_is_the_same_is_not_named() -> None:
    one = resource(VCN, "vcn", {"cidr": "10.0.0.0/16"})
    assert compare_snapshots(side(one), side(one), PLATFORM) == ()


def test_components_and_providers_are_not_compared() -> None:
    grouping = resource("trainyard:oci:Network", "network", custom=False)
    assert compare_snapshots(side(), side(grouping, resource("pulumi:providers:oci", "home")), PLATFORM) == ()


def test_what_is_made_changed_and_removed() -> None:
    before = side(resource(VCN, "gone"), resource(VCN, "changed", {"tags": {"a": "1"}}))
    after = side(resource(VCN, "changed", {"tags": {"a": "2"}}), resource(VCN, "new"))
    assert kinds(before, after) == {"gone": "deleted", "changed": "changed", "new": "created"}
    (changed,) = (one for one in compare_snapshots(before, after, PLATFORM) if one.kind == "changed")
    assert changed.because == ("tags.a",)


@pytest.mark.parametrize(
    ("columns", "kind"), [({"protect": True, "retain": True}, "blocked"), ({"retain": True}, "kept")]
)
def test_what_leaves_a_stack_may_be_protected_or_stay(columns: dict[str, Any], kind: str) -> None:
    (one,) = compare_snapshots(side(resource(VCN, "vcn", **columns)), side(), PLATFORM)
    assert one.kind == kind


def test_a_replacement_names_its_input_and_its_loss() -> None:
    before, after = (side(resource(VCN, "vcn", {"cidr": cidr})) for cidr in ("10.0.0.0/16", "10.1.0.0/16"))
    (one,) = compare_snapshots(before, after, PLATFORM)
    assert (one.kind, one.because, one.loss) == ("replaced", ("cidr",), Loss("the network"))


def test_a_resource_that_names_a_replaced_one_is_replaced_too() -> None:
    def network(cidr: str) -> Any:
        return side(
            resource(VCN, "vcn", {"cidr": cidr}, id="ocid1.vcn.oc1..vcn"),
            resource(SUBNET, "subnet", {"vcnId": "ocid1.vcn.oc1..vcn"}, id="ocid1.subnet.oc1..subnet"),
            resource(SUBNET, "elsewhere", {"vcnId": "ocid1.vcn.oc1..vcn-of-others"}),
        )

    found = {one.name: one for one in compare_snapshots(network("10.0.0.0/16"), network("10.1.0.0/16"), PLATFORM)}
    assert found.keys() == {"vcn", "subnet"}
    assert found["subnet"].kind == "replaced"
    assert found["subnet"].follows == "Vcn vcn"


def test_an_id_that_is_a_name_stays_when_its_resource_is_replaced() -> None:
    platform = Table({VCN: ["cidr"], SUBNET: ["name"]})

    def named(cidr: str) -> Any:
        return side(
            resource(VCN, "vcn", {"cidr": cidr, "name": "n"}, id="n"), resource(SUBNET, "subnet", {"name": "n"})
        )

    assert [one.name for one in compare_snapshots(named("a"), named("b"), platform)] == ["vcn"]


def test_a_renamed_resource_is_the_same_one() -> None:
    before = side(resource(JOB, "old", {"a": 1}))
    after = side(resource(JOB, "new", {"a": 1}, aliases=(before.resources[0].urn,)))
    assert compare_snapshots(before, after, PLATFORM) == ()


def test_options_of_the_program_replace_too() -> None:
    before = side(resource(JOB, "one", {"a": {"b": 1}}), resource(JOB, "two", trigger="x"))
    after = side(resource(JOB, "one", {"a": {"b": 2}}, replaced_for=("a",)), resource(JOB, "two", trigger="y"))
    assert kinds(before, after) == {"one": "replaced", "two": "replaced"}


def test_ignored_inputs_are_no_difference() -> None:
    before, after = (side(resource(JOB, "one", {"a": {"b": value}}, ignored=("a.b",))) for value in (1, 2))
    assert compare_snapshots(before, after, PLATFORM) == ()


def test_another_secret_is_a_change_that_shows_no_value() -> None:
    def with_secret(digest: str) -> Any:
        return side(resource(JOB, "one", {"env": {"TOKEN": SECRET}}, secrets={"env.TOKEN": digest}))

    assert compare_snapshots(with_secret("a"), with_secret("a"), PLATFORM) == ()
    (one,) = compare_snapshots(with_secret("a"), with_secret("b"), PLATFORM)
    assert one.because == ("env.TOKEN",)


def test_a_run_starts_again_as_the_provider_decides() -> None:
    def run(**changed: Any) -> Any:
        inputs = {"platform": "oci", "displayName": "a", "attempt": 1, "nodes": [{"name": "n", "arguments": "x"}]}
        return side(resource(RUN, "resnet/base", {**inputs, **changed}))

    (renamed,) = compare_snapshots(run(), run(displayName="b", tags={"a": "b"}), PLATFORM)
    assert renamed.kind == "changed"
    (again,) = compare_snapshots(run(), run(attempt=2), PLATFORM)
    assert (again.kind, again.because) == ("replaced", ("attempt",))
    assert again.loss is not None
    assert compare_snapshots(run(), run(nodes=[{"name": "n", "arguments": ["x"]}]), PLATFORM) == ()


def test_a_text_of_json_is_compared_inside() -> None:
    texts = ('{"command": ["a"], "rank": 0}', '{"rank": 0, "command": ["b"]}')
    before, after = (side(resource(JOB, "one", {"env": {"LAUNCH": text}})) for text in texts)
    (one,) = compare_snapshots(before, after, PLATFORM)
    assert one.because == ("env.LAUNCH.command[0]",)


def test_the_reasons_of_a_preview_take_precedence() -> None:
    before, after = (side(resource(VCN, "vcn", {"cidr": cidr})) for cidr in ("a", "b"))
    (one,) = compare_snapshots(before, after, PLATFORM, {before.resources[0].urn: ("other",)})
    assert one.because == ("other",)
    (one,) = compare_snapshots(before, after, PLATFORM, {})
    assert one.kind == "changed"


def test_a_destroy_is_blocked_by_what_is_protected() -> None:
    seen = forecast_destroy(
        side(resource(VCN, "a", protect=True, retain=True), resource(VCN, "b", retain=True), resource(VCN, "c"))
    )
    assert (seen.blocks, seen.stays) == (("Vcn a",), ("Vcn b",))
