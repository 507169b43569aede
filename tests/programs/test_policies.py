# SPDX-License-Identifier: Apache-2.0
"""What trainyard makes passes its own policy pack, in every example, before and after ids are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from policies.rule import JudgedResource, Unknown, rules
from tests.programs.conftest import Record, Written
from tests.support.examples import DL1_EXAMPLES, EXAMPLES, OPENPAI_EXAMPLES, PLATFORM
from tests.support.recorder.client import Recording

IMMUTABLE = ("oci-dask-xgboost", "aws-dl1-resnet")
# The remark on tags that can be pushed again, of a stack that does not say `immutable: true`.
MUTABLE = frozenset({("mutable-repository", "repository")})


def judged(recording: Recording, outcome: str) -> dict[tuple[str, str], str]:
    """(rule, logical name) -> reason, for every verdict of that kind."""
    return {
        (rule.id, made.name): verdict.because
        for made in recording.made()
        for rule in rules()
        if made.type in rule.types
        and (verdict := rule.verdict(JudgedResource(made.type, plain(made.inputs)))).outcome == outcome
    }


def plain(value: Any, path: str = "") -> Any:
    if isinstance(value, Mapping):
        if "(unknown)" in value:
            return Unknown(path)
        if "(secret)" in value:
            return plain(value["(secret)"], path)
        return {key: plain(item, f"{path}.{key}" if path else key) for key, item in value.items()}
    return [plain(item, f"{path}[{index}]") for index, item in enumerate(value)] if isinstance(value, list) else value


@pytest.mark.parametrize("preview", [False, True], ids=["up", "preview"])
@pytest.mark.parametrize("name", [*EXAMPLES, *DL1_EXAMPLES, *OPENPAI_EXAMPLES])
def test_an_example_passes(name: str, preview: bool, record: Record) -> None:
    references = {PLATFORM: record("oci-platform").exports} if name == "oci-team" else {}
    recording = record(name, references=references, preview=preview)
    repositories = [*recording.of("ContainerRepository"), *recording.of("Repository")]
    remarks = MUTABLE if repositories and name not in IMMUTABLE else frozenset()
    # One stack file says `versioning: false`.
    remarks |= {("unversioned-bucket", "bucket")} if name == "oci-dask-sklearn" else frozenset()
    assert judged(recording, "fail").keys() == remarks
    assert judged(recording, "unknown") == {}


@pytest.mark.parametrize(
    ("names", "package", "never"),
    [
        (("oci-documented", "oci-pytorch-ddp"), "oci", []),
        # ECR has only private repositories until somebody gives one a policy, and no stack does.
        (("aws-dl1-resnet",), "aws", ["public-repository"]),
    ],
)
def test_every_rule_looked_at_something(names: tuple[str, ...], package: str, never: list[str], record: Record) -> None:
    made = {resource.type for name in names for resource in record(name).made()}
    of_package = {rule.id: {kind for kind in rule.types if kind.startswith(f"{package}:")} for rule in rules()}
    assert [rule for rule, types in of_package.items() if types and not made & types] == never


def test_what_is_wide_open_passes_for_its_reason_only(record: Record) -> None:
    for name, kind, rule in (
        ("oci-horovod-pytorch", "SecurityList", "all-tcp"),
        ("oci-proof-of-concept", "SecurityList", "all-tcp"),
        ("oci-proof-of-concept", "Policy", "tenancy-wide"),
    ):
        [made] = record(name).of(kind).values()
        without = {tag: text for tag, text in made.inputs["freeformTags"].items() if tag != rule}
        assert without != made.inputs["freeformTags"]
        [asked] = [one for one in rules() if one.id == rule]
        assert asked.verdict(JudgedResource(made.type, {**made.inputs, "freeformTags": without})).outcome == "fail"


def test_a_job_that_chose_all_ports_passes(changed: Written) -> None:
    def all_ports(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"]["ports"] = {"data": "all"}

    recording = changed("oci-pytorch-ddp", all_ports)
    assert recording.one("SecurityList").inputs["freeformTags"]["all-tcp"] == "pytorch"
    assert judged(recording, "fail").keys() == MUTABLE


def test_a_tenancy_wide_scope_passes_because_the_stack_chose_it(changed: Written) -> None:
    def whole_tenancy(config: dict[str, Any]) -> None:
        config["trainyard:access"]["scope"] = "tenancy"

    recording = changed("oci-documented", whole_tenancy)
    tags = [policy.inputs["freeformTags"] for policy in recording.of("Policy").values()]
    assert [tag.get("tenancy-wide") for tag in tags] == ["chosen"]
    assert judged(recording, "fail").keys() == MUTABLE


@pytest.mark.parametrize("preview", [False, True], ids=["up", "preview"])
@pytest.mark.parametrize(
    ("network", "cluster", "mode"),
    [
        ({"nat": True}, {}, "documented"),
        ({}, {"publicAddress": "elastic"}, "proof-of-concept"),
        ({}, {"publicAddress": "automatic", "efa": 1}, "least-privilege"),
    ],
)
def test_what_a_stack_of_aws_chose_passes(
    network: dict[str, Any], cluster: dict[str, Any], mode: str, preview: bool, changed: Written
) -> None:
    def choose(config: dict[str, Any]) -> None:
        config["trainyard:environment"] = "dev"
        config["trainyard:network"] = {"cidr": "10.40.0.0/16", "zone": "us-east-1a", **network}
        config["trainyard:access"]["mode"] = mode
        config["trainyard:jobs"]["resnet"]["cluster"] |= cluster

    recording = changed("aws-dl1-resnet", choose, preview=preview)
    assert judged(recording, "fail") == {}
    assert judged(recording, "unknown") == {}


def test_a_public_address_of_aws_passes_for_its_reason_only(changed: Written) -> None:
    def elastic(config: dict[str, Any]) -> None:
        config["trainyard:jobs"]["resnet"]["cluster"]["publicAddress"] = "elastic"

    [address] = changed("aws-dl1-resnet", elastic).of("Eip").values()
    tags = {tag: text for tag, text in address.inputs["tags"].items() if tag != "public-address"}
    [rule] = [one for one in rules() if one.id == "public-addresses"]
    assert rule.verdict(JudgedResource(address.type, address.inputs)).outcome == "pass"
    assert rule.verdict(JudgedResource(address.type, {**address.inputs, "tags": tags})).outcome == "fail"
