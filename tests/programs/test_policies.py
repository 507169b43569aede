# SPDX-License-Identifier: Apache-2.0
"""What trainyard makes passes its own policy pack, in every example, before and after ids are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from policies.rule import JudgedResource, rules
from policies.verdicts import Unknown
from tests.programs.conftest import Record, Written
from tests.support.examples import EXAMPLES, PLATFORM
from tests.support.recorder.client import Recording

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
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_passes(name: str, preview: bool, record: Record) -> None:
    references = {PLATFORM: record("oci-platform").exports} if name == "oci-team" else {}
    recording = record(name, references=references, preview=preview)
    repositories = recording.of("ContainerRepository")
    remarks = MUTABLE if repositories and name != "oci-dask-xgboost" else frozenset()
    # One stack file says `versioning: false`.
    remarks |= {("unversioned-bucket", "bucket")} if name == "oci-dask-sklearn" else frozenset()
    assert judged(recording, "fail").keys() == remarks
    assert judged(recording, "unknown") == {}


def test_every_rule_looked_at_something(record: Record) -> None:
    made = {resource.type for name in ("oci-documented", "oci-pytorch-ddp") for resource in record(name).made()}
    packages = {kind.partition(":")[0] for kind in made}
    of_these = [rule for rule in rules() if packages & {kind.partition(":")[0] for kind in rule.types}]
    assert [rule.id for rule in of_these if not made & set(rule.types)] == []


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
