# SPDX-License-Identifier: Apache-2.0
"""AWS DL1 for rehearsals. It can remove a rule from a security group, or a statement from a policy, for a while."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from catalog.aws import SPOT
from components.aws.client.aws_session import DEPLOYER, local_aws_regions, local_aws_session
from components.aws.local.evidence import AwsEvidence, recorded_statement
from components.aws.local.people import AwsPeople
from components.aws.plan import aws_dl1_job
from components.aws.types.security_rules import read_security_rules, rule_inputs
from components.plan.model import JobPlan
from components.platform.calls import LocalCloud
from components.platform.evidence import Mutation, RuleMutation, StatementMutation
from components.platform.traffic import RuleInForce


class AwsRehearsalPlatform(AwsPeople, AwsEvidence):
    place_keys = ("aws:region", "trainyard:account")
    impossible_faults: Mapping[str, str] = {
        "no capacity": "the machines are up already when a run starts",
        "disk filled": "the disk is that of a machine that goes on to the next run",
    }

    def why_without_fault(self, fault: str, job: JobPlan) -> str:
        if fault == "spot notice" and aws_dl1_job(job).cluster.market != SPOT:
            return "its machines are not spot machines"
        return super().why_without_fault(fault, job)

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        if isinstance(mutation, RuleMutation):
            return _without_group_rule(cloud, mutation.before)
        return _without_policy_statement(cloud, mutation)


@contextmanager
def _without_group_rule(cloud: LocalCloud, rule: RuleInForce) -> Iterator[None]:
    client, row = _find_group_rule(cloud, rule)
    which, side = {"GroupId": rule.list}, rule.direction
    permission = {key: row[key] for key in ("IpProtocol", "FromPort", "ToPort") if row.get(key) is not None}
    described = {"Description": row["Description"]} if row.get("Description") else {}
    if group := (row.get("ReferencedGroupInfo") or {}).get("GroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": group, **described}]
    elif prefix_list := row.get("PrefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": prefix_list, **described}]
    else:
        permission["IpRanges"] = [{"CidrIp": row["CidrIpv4"], **described}]
    getattr(client, f"revoke_security_group_{side}")(**which, SecurityGroupRuleIds=[row["SecurityGroupRuleId"]])
    try:
        yield
    finally:
        getattr(client, f"authorize_security_group_{side}")(**which, IpPermissions=[permission])


def _find_group_rule(cloud: LocalCloud, rule: RuleInForce) -> tuple[Any, Mapping[str, Any]]:
    """Finds a rule of a security group by its content."""
    for region in local_aws_regions():
        client = local_aws_session(cloud, DEPLOYER, region).client("ec2")
        answer = client.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [rule.list]}])
        for row in answer["SecurityGroupRules"]:
            (other,) = read_security_rules(rule_inputs(row), "egress" if row["IsEgress"] else "ingress")
            if all(getattr(rule, part) == getattr(other, part) for part in ("direction", "protocol", "ports", "peer")):
                return client, row
    raise LookupError(f"the security group {rule.list} has no such rule: {rule.title}")


@contextmanager
def _without_policy_statement(cloud: LocalCloud, mutation: StatementMutation) -> Iterator[None]:
    """Replaces a policy document for a while: by another version of the policy, or in the role or group itself."""
    iam = local_aws_session(cloud, DEPLOYER, local_aws_regions()[0]).client("iam")
    pages = iam.get_paginator("list_policies").paginate(Scope="All")
    policies = (policy for page in pages for policy in page["Policies"])
    policy = next((policy for policy in policies if policy["PolicyName"] == mutation.policy), None)
    with _other_policy_version(iam, policy, mutation) if policy else _other_inline_policy(iam, mutation):
        yield


@contextmanager
def _other_policy_version(iam: Any, policy: Mapping[str, Any], mutation: StatementMutation) -> Iterator[None]:
    arn, version = policy["Arn"], policy["DefaultVersionId"]
    body = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    document = _rest_of_document(body, mutation)
    made = iam.create_policy_version(PolicyArn=arn, PolicyDocument=document, SetAsDefault=True)["PolicyVersion"]
    try:
        yield
    finally:
        iam.set_default_policy_version(PolicyArn=arn, VersionId=version)
        iam.delete_policy_version(PolicyArn=arn, VersionId=made["VersionId"])


@contextmanager
def _other_inline_policy(iam: Any, mutation: StatementMutation) -> Iterator[None]:
    """In the role or group that has this inline policy."""
    holders = (
        (kind, {f"{kind.capitalize()}Name": row[f"{kind.capitalize()}Name"]})
        for kind in ("role", "group")
        for row in getattr(iam, f"list_{kind}s")()[f"{kind.capitalize()}s"]
    )
    for kind, holder in holders:
        if mutation.policy in getattr(iam, f"list_{kind}_policies")(**holder)["PolicyNames"]:
            break
    else:
        raise LookupError(f"no role and no group has the policy {mutation.policy}")
    named = {**holder, "PolicyName": mutation.policy}
    body = getattr(iam, f"get_{kind}_policy")(**named)["PolicyDocument"]
    put = getattr(iam, f"put_{kind}_policy")
    put(**named, PolicyDocument=_rest_of_document(body, mutation))
    try:
        yield
    finally:
        put(**named, PolicyDocument=json.dumps(body))


def _rest_of_document(body: Mapping[str, Any], mutation: StatementMutation) -> str:
    kept = [one for one in body["Statement"] if recorded_statement(one) != mutation.before]
    # A document must not be empty: this statement allows a call that does not matter here.
    rest = kept or [{"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}]
    return json.dumps({**body, "Statement": rest})


REHEARSAL = AwsRehearsalPlatform()
