# SPDX-License-Identifier: Apache-2.0
"""What is done to a run for a case of `trainyard runs why`: through the clouds' own doors, or to a process by its
number. Each action is undone in the end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import oci
import psutil

from localcloud import admin
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import Clients
from tests.support.waiting import eventually
from tests.support.why_cases import Case

# The names in the stack files of tests/why/team.
REGION, ROLE, REPOSITORY, TAG = "us-west-2", "why-aws-nodes", "why/training", "1.0"
# What is done to a process from outside. What the script does by itself in its fourth step needs nothing from here.
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
_STORE = "store "
# The store's operations by which nodes tell one another that they are there.
_WRITES = {"oci": "PutObject", "aws": "s3.PutObject"}
_EVERYTHING = "-1"


@contextmanager
def acted_before(cloud: Cloud, case: Case) -> Iterator[None]:
    """What is done before the run starts."""
    if case.action == "close":
        closed = _closed_on_oci(cloud, case) if case.platform == "oci" else _closed_on_aws(cloud, case)
    elif case.action == "refuse":
        closed = _refused_by_oci(cloud, case) if case.platform == "oci" else _refused_by_aws(cloud, case)
    elif case.action == "remove-image":
        closed = _without_image(cloud)
    else:
        yield
        return
    with closed:
        yield


@contextmanager
def acted_when_accepted(cloud: Cloud, case: Case) -> Iterator[None]:
    """What is done once the platform has taken the run."""
    if not case.action.startswith(_STORE):
        yield
        return
    kind = case.action.removeprefix(_STORE)
    fault = admin.add_fault(
        cloud, kind, operations=_WRITES[case.platform], **({"status": 503} if kind == "status" else {})
    )
    try:
        yield
    finally:
        admin.clear_faults(cloud, fault["id"])


@contextmanager
def acted_while_training(case: Case, name: str) -> Iterator[None]:
    """What is done to a process of the run while all of its ranks train."""
    if case.action not in SIGNALS:
        yield
        return
    process = eventually(lambda: _process_of(name, case.victim))
    assert process is not None
    os.kill(process.pid, SIGNALS[case.action])
    try:
        yield
    finally:
        if case.action == "stop" and process.is_running():
            os.kill(process.pid, signal.SIGCONT)


def _process_of(name: str, rank: int) -> psutil.Process | None:
    """The process of a rank that trains: the last one in the chain of those that started it."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "--case" in words and words[-1] == name and "train.py" in " ".join(words) and not process.children():
            try:
                if process.environ().get("RANK") == str(rank):
                    return process
            except (psutil.AccessDenied, psutil.NoSuchProcess):
                continue
    return None


@contextmanager
def _closed_on_oci(cloud: Cloud, case: Case) -> Iterator[None]:
    """The rules of a range are taken out of the stack's security list."""
    network, models = Clients(cloud).network, oci.core.models
    lists = network.list_security_lists(cloud.compartment).data
    (found,) = [rules for rules in lists if rules.display_name.endswith("-rules")]
    first, _, last = case.ports.partition("-")
    ports = (int(first), int(last or first))

    def kept(rules: list[Any], ways: str) -> list[Any]:
        if case.ways not in ("both", ways):
            return rules
        ranges = [rule.tcp_options and rule.tcp_options.destination_port_range for rule in rules]
        left = [rule for rule, of in zip(rules, ranges, strict=True) if not of or (of.min, of.max) != ports]
        assert len(left) < len(rules), f"no {ways} rule has {case.ports}"
        return left

    def update(ingress: list[Any], egress: list[Any]) -> None:
        details = models.UpdateSecurityListDetails(ingress_security_rules=ingress, egress_security_rules=egress)
        network.update_security_list(found.id, details)

    update(kept(found.ingress_security_rules, "ingress"), kept(found.egress_security_rules, "egress"))
    try:
        yield
    finally:
        update(found.ingress_security_rules, found.egress_security_rules)


@contextmanager
def _closed_on_aws(cloud: Cloud, case: Case) -> Iterator[None]:
    """The rules by which the group's members reach one another are revoked."""
    ec2 = AwsClients(cloud, region=REGION)["ec2"]
    groups = ec2.describe_security_groups()["SecurityGroups"]
    undo: list[Callable[[], Any]] = []
    for group in groups:
        for ways, key in (("ingress", "IpPermissions"), ("egress", "IpPermissionsEgress")):
            own = [
                {"IpProtocol": rule["IpProtocol"], "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]}
                for rule in group[key]
                if rule["IpProtocol"] == _EVERYTHING
                and group["GroupId"] in [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]
                and group["GroupName"] != "default"
            ]
            if own and case.ways in ("both", ways):
                what = {"GroupId": group["GroupId"], "IpPermissions": own}
                getattr(ec2, f"revoke_security_group_{ways}")(**what)
                undo.append(partial(getattr(ec2, f"authorize_security_group_{ways}"), **what))
    assert undo, [(group["GroupName"], group["IpPermissions"], group["IpPermissionsEgress"]) for group in groups]
    try:
        yield
    finally:
        for put_back in undo:
            put_back()


@contextmanager
def _refused_by_oci(cloud: Cloud, case: Case) -> Iterator[None]:
    """The statement is taken out of the stack's policy."""
    identity, models = Clients(cloud).identity, oci.identity.models
    (policy,) = identity.list_policies(cloud.compartment).data
    left = [text for text in policy.statements if "dynamic-group" not in text or case.statement not in text]
    assert len(left) == len(policy.statements) - 1, policy.statements
    identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=left))
    try:
        yield
    finally:
        identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=policy.statements))


@contextmanager
def _refused_by_aws(cloud: Cloud, case: Case) -> Iterator[None]:
    """A new version of the role's policy does not have the statement, as the console makes it."""
    iam = AwsClients(cloud)["iam"]
    attached = iam.list_attached_role_policies(RoleName=ROLE)["AttachedPolicies"]
    (arn,) = [row["PolicyArn"] for row in attached]
    before = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=before)["PolicyVersion"]["Document"]
    left = [row for row in document["Statement"] if case.statement not in row["Action"]]
    assert len(left) < len(document["Statement"]), document
    text = json.dumps({**document, "Statement": left})
    made = iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)["PolicyVersion"]
    try:
        yield
    finally:
        iam.set_default_policy_version(PolicyArn=arn, VersionId=before)
        iam.delete_policy_version(PolicyArn=arn, VersionId=made["VersionId"])


@contextmanager
def _without_image(cloud: Cloud) -> Iterator[None]:
    """The image is deleted from its registry, and pushed again in the end."""
    artifacts = Clients(cloud).artifacts
    for image in artifacts.list_container_images(cloud.compartment, repository_name=REPOSITORY).data.items:
        artifacts.delete_container_image(image.id)
    try:
        yield
    finally:
        admin.push_image(cloud, f"iad.ocir.io/{cloud.namespace}/{REPOSITORY}:{TAG}")
