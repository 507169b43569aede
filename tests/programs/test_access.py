# SPDX-License-Identifier: Apache-2.0
"""The access and secrets that whole programs make."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from components.oci.iam import parse
from tests.programs.conftest import Record, Written
from tests.support.examples import EXAMPLES
from tests.support.recorder.answers import HOME_REGION

Config = dict[str, Any]
VALUE = "v1:c2VjcmV0:do-not-show-me"


def test_groups_and_policies_are_written_in_the_home_region(record: Record) -> None:
    recording = record("oci-pytorch-ddp")
    homes = {one.provider for one in recording.resources if ":Identity/" in one.type}
    assert homes == {"home"}
    home = next(one for one in recording.resources if one.name == "home")
    assert home.inputs["region"] == HOME_REGION
    elsewhere = {one.provider for one in recording.made() if ":Identity/" not in one.type}
    assert elsewhere == {"", "runs"}


def test_a_given_home_region_is_not_looked_up(record: Record) -> None:
    recording = record("oci-documented")
    assert not [one for one in recording.invokes if "getRegionSubscriptions" in one["function"]]


def test_a_stack_in_the_home_region_has_one_provider(record: Record) -> None:
    recording = record("oci-documented")
    assert {one.provider for one in recording.resources if ":Identity/" in one.type} == {""}


def test_the_home_provider_signs_as_the_stack_does(changed: Written) -> None:
    def signed(config: Config) -> None:
        config.update({"oci:configFileProfile": "PLATFORM", "oci:privateKeyPassword": {"secure": VALUE}})

    home = next(one for one in changed("oci-pytorch-ddp", signed).resources if one.name == "home")
    assert home.inputs["configFileProfile"] == "PLATFORM"
    assert home.inputs["privateKeyPassword"] == {"(secret)": VALUE}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "oci-team"])
def test_every_statement_of_every_example_is_oci_policy_language(name: str, record: Record) -> None:
    policies = record(name).of("Policy").values()
    for policy in policies:
        assert policy.inputs["statements"]
        for statement in policy.inputs["statements"]:
            parse.parse_statement(statement)


def test_statements_beyond_the_limit_go_into_another_policy(changed: Written) -> None:
    def many(config: Config) -> None:
        jobs = config["trainyard:jobs"]
        for number in range(10):
            inputs = [
                {"mount": f"/data/{letter}", "bucket": f"data-{number}-{letter}", "prefix": "a/"} for letter in "abcde"
            ]
            jobs[f"job-{'abcdefghij'[number]}"] = {**jobs["resnet"], "inputs": inputs, "runs": {}}

    made = changed("oci-pytorch-ddp", many).of("Policy")
    assert set(made) == {"access", "access-2", "access-3"}
    counts = {name: len(policy.inputs["statements"]) for name, policy in made.items()}
    # OCI's own default limit.
    assert counts["access"] == counts["access-2"] == 50
    assert counts["access-3"] > 0
    assert len({policy.inputs["name"] for policy in made.values()}) == 3


def _in_the_open(value: Any) -> Iterator[str]:
    """Every text that is not inside a secret."""
    if isinstance(value, dict):
        if "(secret)" not in value:
            for item in value.values():
                yield from _in_the_open(item)
    elif isinstance(value, list):
        for item in value:
            yield from _in_the_open(item)
    elif isinstance(value, str):
        yield value


def _with_secrets(config: Config) -> None:
    job = config["trainyard:jobs"]["clusters"]
    job["env"] = {"API_TOKEN": {"secure": VALUE}, "TOKEN_OCID": "${secret.catalog}"}
    job["roles"]["worker"] = {"replicas": 2, "env": {"WORKER_TOKEN": {"secure": VALUE}}}
    job["runs"]["base"] = {"env": {"RUN_TOKEN": {"secure": VALUE}}}
    config["trainyard:vault"]["secrets"] = {"catalog": {"secure": VALUE}}


@pytest.mark.parametrize("preview", [False, True])
def test_secret_values_are_marked_as_pulumi_secrets(preview: bool, changed: Written) -> None:
    recording = changed("oci-dask-ml", _with_secrets, preview=preview)
    hidden = base64.b64encode(VALUE.encode()).decode()
    for resource in recording.resources:
        shown = [text for text in _in_the_open(resource.inputs) if VALUE in text or hidden in text]
        assert not shown, resource.urn
    assert not [text for text in _in_the_open(recording.exports) if VALUE in text]


def test_secrets_reach_the_nodes_and_the_vault(changed: Written) -> None:
    recording = changed("oci-dask-ml", _with_secrets)
    scheduler, worker = recording.one("Run").inputs["nodes"][:2]
    assert scheduler["environment"]["API_TOKEN"] == {"(secret)": VALUE}
    assert worker["environment"]["WORKER_TOKEN"] == {"(secret)": VALUE}
    assert worker["environment"]["RUN_TOKEN"] == {"(secret)": VALUE}
    assert "WORKER_TOKEN" not in scheduler["environment"]
    secret = recording.one("Secret")
    assert scheduler["environment"]["TOKEN_OCID"] == f"ocid1.vaultsecret.oc1..{secret.name}"
    assert secret.inputs["secretName"] == "research-prod-catalog"
