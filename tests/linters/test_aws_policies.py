# SPDX-License-Identifier: Apache-2.0
"""Checks every policy document for AWS with a linter and with AWS's own list of actions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

from catalog.tables import table
from components.aws.access_report import deployer_policies
from components.aws.plan import AwsDl1Plan
from components.aws.stack import AwsAccess, AwsNetwork, AwsUsers, Cluster
from components.aws.statements import (
    CHARACTERS_PER_POLICY,
    TRUST,
    VERSION,
    aws_policies,
    named_resource,
    policy_size,
    policy_size_problem,
)
from components.aws.types.deployer_actions import drift_rows_of_kind, rows_of_kind
from schemas.model import AccessMode, Bucket, Input, Registry, Uses
from tests.support.aws_plans import ACCOUNT, REGION, aws_job, aws_plan
from tests.support.client_environment import environment

LINTER = Path(__file__).parent
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/vision-dev-nodes"
USERS = (AwsUsers(group="scientists"), AwsUsers(role="scientist"))
RESERVED = Cluster(
    ami_parameter="/aws/service/gaudi/{release}/image", reservation="cr-0a1b2c3d", placement_group="company-gaudi",
    public_address="elastic", spot=True,
)  # fmt: skip
NETWORKS = (
    AwsNetwork(nat=True),
    AwsNetwork(vpc="vpc-0a1b2c3d", subnet_cidr="10.0.1.0/24", route_table="rtb-0a1b2c3d"),
    AwsNetwork(subnet="subnet-0a1b2c3d", security_group="sg-0a1b2c3d"),
)


def plans() -> Iterator[tuple[str, AwsDl1Plan]]:
    for mode, users, network in product(get_args(AccessMode), USERS, NETWORKS):
        name = f"{mode} {users.role or users.group} {network.vpc or network.subnet}"
        yield (
            name,
            aws_plan(
                access=AwsAccess(mode=mode, users=users),
                network=network,
                bucket=Bucket(key=KEY if network.nat else None, keep=bool(network.nat)),
                registry=Registry(existing="company/images") if network.vpc else Registry(),
                jobs={"resnet": aws_job(inputs=(Input("/data", "company-data"),)), "bert": aws_job(cluster=RESERVED)},
            ),
        )
    for mode, users in product(get_args(AccessMode), USERS):
        access = AwsAccess(mode=mode, users=users, permissions_boundary=f"arn:aws:iam::{ACCOUNT}:policy/company")
        uses = Uses("organization/trainyard/net", ("network",))
        yield f"{mode} {users.role or users.group} within a boundary", aws_plan(access=access, uses=uses)


def documents() -> dict[str, dict[str, Any]]:
    """For each principal of each plan all its statements: a call may need several, which two policies can hold."""
    # The linter expects a resource, which a trust policy has by itself: the role it belongs to.
    statements: dict[str, list[Mapping[str, Any]]] = {
        "trust": [{**statement, "Resource": ROLE} for statement in TRUST["Statement"]]
    }
    for name, plan in plans():
        for policy in (*aws_policies(plan), *deployer_policies(plan)):
            if policy.document:
                statements.setdefault(f"{name}: {policy.who}", []).extend(policy.document["Statement"])
    return {name: {"Version": VERSION, "Statement": listed} for name, listed in statements.items()}


def rows() -> Iterator[tuple[str, str, str]]:
    """(what for, resource, action) of every row of the catalog."""
    access = table("aws_dl1_access")
    parts = {part: access[part] for part in ("actions", "users", "runs")}
    parts["deployer"] = {kind: rows_of_kind(kind) for kind in access["deployer"]}
    parts["drift"] = {kind: drift_rows_of_kind(kind) for kind in access["deployer"]}
    for part, rows_of in parts.items():
        for words, listed in rows_of.items():
            for row in listed:
                yield from ((f"{part}: {words}", row["on"], action) for action in row["actions"])


def faulty(**changes: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::vision-dev/*"}
    return {"Version": "2012-10-17", "Statement": [{**statement, **changes}]}


# Mistakes that the linter must report, by its names.
FAULTS: dict[str, dict[str, Any]] = {
    "UNKNOWN_ACTION": faulty(Action="s3:FetchObject"),
    "RESOURCE_MISMATCH": faulty(Resource="arn:aws:s3:::vision-dev"),
    "INVALID_ARN": faulty(Resource="vision-dev"),
    "UNKNOWN_CONDITION_FOR_ACTION": faulty(Condition={"StringEquals": {"ec2:Vpc": "vpc-0a1b2c3d"}}),
}


@pytest.fixture(scope="module")
def judged() -> Mapping[str, Any]:
    wanted = {"documents": documents() | FAULTS, "actions": sorted({action for _, _, action in rows()})}
    python = environment(LINTER / "requirements.txt") / "python"
    command = [str(python), "-W", "ignore", "-P", str(LINTER / "judge_policies.py")]
    done = subprocess.run(command, input=json.dumps(wanted), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: Mapping[str, Any] = json.loads(done.stdout)
    return answer


def test_the_linter_accepts_every_policy_document(judged: Mapping[str, Any]) -> None:
    mine = documents().keys()
    assert len(mine) > 40
    assert {name: judged["findings"][name] for name in mine if judged["findings"][name]} == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_linter_reports_known_mistakes(fault: str, judged: Mapping[str, Any]) -> None:
    assert [told for told in judged["findings"][fault] if told.startswith(fault)]


def test_every_action_exists_in_aws(judged: Mapping[str, Any]) -> None:
    assert [action for action, known in judged["actions"].items() if known is None] == []


def test_a_wildcard_resource_is_used_only_if_aws_has_nothing_narrower(judged: Mapping[str, Any]) -> None:
    wide = {action for _, on, action in rows() if on == "all"}
    assert [action for action in wide if judged["actions"][action]["resources"]] == []
    assert [action for _, on, action in rows() if on != "all" and not judged["actions"][action]["resources"]] == []


def test_a_condition_key_is_used_only_for_actions_that_support_it(judged: Mapping[str, Any]) -> None:
    plan = aws_plan()
    wrong = [
        (words, action, key)
        for words, on, action in rows()
        for keys in named_resource(plan, on).condition.values()
        for key in keys
        if key.replace("/stack", "/${TagKey}") not in judged["actions"][action]["conditions"]
    ]
    assert wrong == []


def test_every_policy_is_within_awss_limits() -> None:
    for name, plan in plans():
        for made in (aws_policies(plan), deployer_policies(plan)):
            assert policy_size_problem(made) is None, name
            assert all(policy_size(one.document or {}) <= CHARACTERS_PER_POLICY for one in made)
