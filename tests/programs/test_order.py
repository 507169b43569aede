# SPDX-License-Identifier: Apache-2.0
"""Dependencies between resources, resources that stay after a destroy, and tags of all resources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.programs.conftest import Record, Written
from tests.support.examples import EXAMPLES, stack_file
from tests.support.recorder.client import Client

# pulumi_oci has no tags on these; everything else is tagged.
TAGLESS = {"DomainsDynamicResourceGroup"}


def test_groups_come_before_policies_and_policies_before_jobs_and_runs(record: Record) -> None:
    recording = record("oci-pytorch-ddp")
    assert "runs" in recording.one("Policy").after
    for resource in (recording.one("Job"), *recording.of("Run").values()):
        assert "access" in resource.after, resource.name


def test_the_bucket_and_the_repository_come_before_jobs_and_runs(record: Record) -> None:
    recording = record("oci-dask-lightgbm")
    for resource in (recording.one("Job"), *recording.of("Run").values()):
        assert {"bucket", "repository"} <= set(resource.after), resource.name


def test_a_bucket_with_a_teams_key_is_made_after_the_access_to_the_key(record: Record) -> None:
    assert "access" in record("oci-dask-xgboost").one("Bucket").after
    assert record("oci-dask-lightgbm").one("Bucket").after == ()


@pytest.mark.parametrize(("name", "kept"), [("oci-pytorch-ddp", True), ("oci-proof-of-concept", False)])
def test_data_is_protected_and_retained_by_default(name: str, kept: bool, record: Record) -> None:
    recording = record(name)
    keeping = {resource.kind for resource in recording.resources if resource.protect or resource.retain}
    assert keeping == ({"Bucket", "ContainerRepository"} if kept else set())
    for resource in recording.resources:
        assert resource.protect == resource.retain


def test_policies_are_deleted_before_they_are_replaced(record: Record) -> None:
    assert record("oci-documented").one("Policy").delete_first


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "oci-team"])
def test_everything_has_owner_tags(name: str, record: Record) -> None:
    recording = record(name)
    for resource in recording.made():
        if resource.kind in TAGLESS:
            continue
        tags = resource.inputs.get("freeformTags") or resource.inputs.get("tags") or {}
        assert tags.get("stack") == name, resource.urn
        assert {"team", "environment", "managed-by"} <= set(tags), resource.urn
        assert ("job" in tags) == (resource.kind in ("Job", "Run")), resource.urn
        assert ("run" in tags) == (resource.kind == "Run"), resource.urn


def test_the_teams_own_tags_are_on_every_resource(record: Record) -> None:
    for resource in record("oci-dask-lightgbm").made():
        tags = resource.inputs.get("freeformTags") or resource.inputs["tags"]
        assert tags["cost-center"] == "4711", resource.urn


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_logical_name_ends_with_a_number(name: str, record: Record) -> None:
    """A number in a logical name is a place in a list, which changes when an earlier element is removed."""
    references = {"organization/trainyard/oci-platform": record("oci-platform").exports}
    recording = record(name, references=references)
    urns = [resource.urn for resource in recording.resources]
    assert len(urns) == len(set(urns))
    for resource in recording.resources:
        assert not resource.name[-1].isdigit(), resource.urn


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_preview_makes_the_same_resources_with_unknown_ids(name: str, record: Record) -> None:
    references = {"organization/trainyard/oci-platform": record("oci-platform").exports}
    later = record(name, references=references)
    now = record(name, preview=True, references=references)
    assert {one.urn for one in now.resources} == {one.urn for one in later.resources}
    unknown = [run.inputs["job"] for run in now.of("Run").values()]
    assert all(value == {"(unknown)": True} for value in unknown)


def test_two_recordings_of_one_file_are_equal(client: Client, tmp_path: Path) -> None:
    def content() -> Mapping[str, Any]:
        recording = client.record(stack_file("oci-documented"), tmp_path)
        return {one.urn: (one.inputs, one.after, one.needs) for one in recording.resources}

    assert content() == content()


def test_the_order_of_rules_does_not_depend_on_the_file(changed: Written) -> None:
    def turned(config: dict[str, Any]) -> None:
        config["trainyard:network"]["frameworks"].reverse()
        config["trainyard:jobs"]["fraud"]["ports"] = dict(reversed(config["trainyard:jobs"]["fraud"]["ports"].items()))

    one = changed("oci-documented", lambda config: None).one("SecurityList").inputs
    other = changed("oci-documented", turned).one("SecurityList").inputs
    assert one == other
    starts = [rule["tcpOptions"]["min"] for rule in one["ingressSecurityRules"]]
    assert starts == sorted(starts)
