# SPDX-License-Identifier: Apache-2.0
"""The resources of every example pass our own policy pack, before and after ids are known."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest
import yaml

from policies.rule import JudgedResource, JudgedStack, Unknown, resource_rules, stack_rules
from policies.verdicts import PolicyContext, judge_all
from tests.programs.conftest import Record, Written
from tests.support.examples import AWS_EXAMPLES, EXAMPLES, OPENPAI_EXAMPLES, PLATFORM, stack_file
from tests.support.recorder.client import Recording

IMMUTABLE = ("local", "oci-dask-xgboost", "aws-dl1-resnet", "aws-p5-ddp", "aws-p5en-block")
NOT_KEPT = frozenset({("unprotected-data", "bucket"), ("unprotected-data", "repository")})
# Choices of stack files: `versioning: false`, `keep: false`, `logs: { enabled: false }`.
CHOSEN: Mapping[str, frozenset[tuple[str, str]]] = {
    "oci-dask-sklearn": frozenset({("unversioned-bucket", "bucket")}),
    "oci-tensorflow-mirrored": frozenset({("logging-off", "digits")}),
    **dict.fromkeys(
        ("oci-proof-of-concept", "aws-dl1-single-node", "aws-g6e-spot", "aws-small", "aws-trn1-ddp"), NOT_KEPT
    ),
}
# The remark on tags that can be pushed again, of a stack that does not say `immutable: true`.
MUTABLE = frozenset({("mutable-repository", "repository")})


def judged(recording: Recording, outcome: str, mode: str = "") -> dict[tuple[str, str], str]:
    """(rule, logical name) -> reason, for every verdict of that kind. `mode`: of the stack's access."""
    resources = [
        JudgedResource(made.type, plain(made.inputs), made.name, made.urn, made.protect) for made in recording.made()
    ]
    found = judge_all(resources, PolicyContext(date(2026, 11, 26), access_mode=mode))
    return {(result.rule, result.resource): result.because for result in found if result.outcome == outcome}


def without_tags(results: Mapping[tuple[str, str], str]) -> set[tuple[str, str]]:
    return {(rule, resource) for rule, resource in results if rule != "mutable-tags"}


def plain(value: Any, path: str = "") -> Any:
    if isinstance(value, Mapping):
        if "(unknown)" in value:
            return Unknown(path)
        if "(secret)" in value:
            return plain(value["(secret)"], path)
        return {key: plain(item, f"{path}.{key}" if path else key) for key, item in value.items()}
    return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)] if isinstance(value, list) else value


@pytest.mark.parametrize("preview", [False, True], ids=["up", "preview"])
@pytest.mark.parametrize("name", [*EXAMPLES, *AWS_EXAMPLES, *OPENPAI_EXAMPLES])
def test_an_example_passes(name: str, preview: bool, record: Record) -> None:
    references = {PLATFORM: record("oci-platform").exports} if name == "oci-team" else {}
    recording = record(name, references=references, preview=preview)
    repositories = [*recording.of("ContainerRepository"), *recording.of("Repository")]
    remarks = MUTABLE if repositories and name not in IMMUTABLE else frozenset()
    remarks |= CHOSEN.get(name, frozenset())
    mode = yaml.safe_load(stack_file(name).read_text("utf-8"))["config"].get("trainyard:access", {}).get("mode", "")
    failed = judged(recording, "fail", mode)
    assert without_tags(failed) == remarks
    # A tag of the stack's own repository can be pushed again. For other repositories, this is not known.
    by_tag = [reason for (rule, _), reason in failed.items() if rule == "mutable-tags"]
    assert not by_tag or (repositories and name not in IMMUTABLE), by_tag
    assert without_tags(judged(recording, "unknown", mode)) == set()


@pytest.mark.parametrize(
    ("names", "package", "never"),
    [
        (("oci-documented", "oci-pytorch-ddp"), "oci", []),
        # ECR has only private repositories until somebody gives one a policy, and no stack does.
        (("aws-dl1-resnet",), "aws", ["public-repository"]),
    ],
)
def test_every_rule_judges_some_resource(
    names: tuple[str, ...], package: str, never: list[str], record: Record
) -> None:
    made = {resource.type for name in names for resource in record(name).made()}
    of_package = {rule.id: {kind for kind in rule.types if kind.startswith(f"{package}:")} for rule in resource_rules()}
    assert [rule for rule, types in of_package.items() if types and not made & types] == never


def test_open_resources_pass_only_with_their_reason(record: Record) -> None:
    for name, kind, rule in (
        ("oci-horovod-pytorch", "SecurityList", "all-tcp"),
        ("oci-proof-of-concept", "SecurityList", "all-tcp"),
        ("oci-proof-of-concept", "Policy", "tenancy-wide"),
    ):
        [made] = record(name).of(kind).values()
        without = {tag: text for tag, text in made.inputs["freeformTags"].items() if tag != rule}
        assert without != made.inputs["freeformTags"]
        [asked] = [one for one in resource_rules() if one.id == rule]
        assert asked.verdict(JudgedResource(made.type, {**made.inputs, "freeformTags": without})).outcome == "fail"


def test_a_job_that_chose_all_ports_passes(changed: Written) -> None:
    def all_ports(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"]["ports"] = {"data": "all"}

    recording = changed("oci-pytorch-ddp", all_ports)
    assert recording.one("SecurityList").inputs["freeformTags"]["all-tcp"] == "pytorch"
    assert without_tags(judged(recording, "fail")) == MUTABLE


def test_a_job_without_runs_states_its_nodes_and_ports(changed: Written) -> None:
    def without_runs(config: dict[str, Any]) -> None:
        del config["trainyard:jobs"]["resnet"]["runs"]

    recording = changed("oci-pytorch-ddp", without_runs)
    assert recording.one("Job").inputs["freeformTags"]["launch"] == "nodes=4 ports=29400,29500-29563"
    assert without_tags(judged(recording, "fail")) == MUTABLE
    assert without_tags(judged(recording, "unknown")) == set()


def test_ports_for_other_stacks_pass_only_for_their_frameworks(record: Record) -> None:
    [made] = record("oci-platform").of("SecurityList").values()
    [asked] = [one for one in stack_rules() if one.id == "unused-ports"]
    resource = JudgedResource(made.type, made.inputs)
    assert not asked.verdicts(JudgedStack((resource,)))
    tags = {tag: text for tag, text in resource.tags.items() if tag != "opened-for"}
    without = JudgedResource(made.type, {**made.inputs, "freeformTags": tags})
    assert {verdict.outcome for _, verdict in asked.verdicts(JudgedStack((without,)))} == {"fail"}


def test_a_tenancy_wide_scope_passes_because_the_stack_chose_it(changed: Written) -> None:
    def whole_tenancy(config: dict[str, Any]) -> None:
        config["trainyard:access"]["scope"] = "tenancy"

    recording = changed("oci-documented", whole_tenancy)
    tags = [policy.inputs["freeformTags"] for policy in recording.of("Policy").values()]
    assert [tag.get("tenancy-wide") for tag in tags] == ["chosen"]
    assert without_tags(judged(recording, "fail")) == MUTABLE


@pytest.mark.parametrize("preview", [False, True], ids=["up", "preview"])
@pytest.mark.parametrize(
    ("network", "cluster", "mode"),
    [
        ({"nat": True}, {}, "documented"),
        ({}, {"publicAddress": "elastic"}, "proof-of-concept"),
        ({}, {"publicAddress": "automatic", "efa": 1}, "least-privilege"),
    ],
)
def test_explicit_choices_of_an_aws_stack_pass(
    network: dict[str, Any], cluster: dict[str, Any], mode: str, preview: bool, changed: Written
) -> None:
    def choose(config: dict[str, Any]) -> None:
        config["trainyard:environment"] = "dev"
        config["trainyard:network"] = {"cidr": "10.40.0.0/16", "zone": "us-east-1a", **network}
        config["trainyard:access"]["mode"] = mode
        config["trainyard:jobs"]["resnet"]["cluster"] |= cluster

    recording = changed("aws-dl1-resnet", choose, preview=preview)
    assert judged(recording, "fail", mode) == {}
    assert judged(recording, "unknown", mode) == {}


def test_a_public_address_on_aws_passes_only_with_its_reason(changed: Written) -> None:
    def elastic(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"]["cluster"]["publicAddress"] = "elastic"

    [address] = changed("aws-dl1-resnet", elastic).of("Eip").values()
    tags = {tag: text for tag, text in address.inputs["tags"].items() if tag != "public-address"}
    [rule] = [one for one in resource_rules() if one.id == "public-addresses"]
    assert rule.verdict(JudgedResource(address.type, address.inputs)).outcome == "pass"
    assert rule.verdict(JudgedResource(address.type, {**address.inputs, "tags": tags})).outcome == "fail"
