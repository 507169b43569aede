# SPDX-License-Identifier: Apache-2.0
"""Access that a review reports as gained really is: on the local clouds, the call is refused before the change, and
allowed after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import oci
from botocore.exceptions import ClientError

from components.platform.review import Snapshot
from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import Clients
from tests.support.reviews import resource, sentences

IN = "in compartment training"
READ = f"allow group scientists to read objects {IN} where target.bucket.name = 'ours'"
NOT_ALLOWED = (oci.exceptions.ServiceError, ClientError)


def passes(call: Callable[[], Any]) -> bool:
    try:
        call()
    except NOT_ALLOWED as refused:
        status = getattr(refused, "status", None) or refused.response["ResponseMetadata"]["HTTPStatusCode"]
        assert status in (403, 404)
        return False
    return True


def test_gains_in_a_review_match_the_decisions_of_the_local_oci(cloud: Cloud) -> None:
    deployer, user = Clients(cloud), Clients(cloud, "user")
    namespace = deployer.storage.get_namespace().data
    for name in ("ours", "theirs"):
        details = oci.object_storage.models.CreateBucketDetails(name=name, compartment_id=cloud.compartment)
        deployer.storage.create_bucket(namespace, details)
        deployer.storage.put_object(namespace, name, "a", b"1")
    models = oci.identity.models
    policy = deployer.identity.create_policy(
        models.CreatePolicyDetails(compartment_id=cloud.tenancy, name="objects", description="-", statements=[READ])
    ).data

    def widened(after: str, call: Callable[[], Any]) -> list[str]:
        """The review of a change that makes this call succeed."""
        assert not passes(call)
        sides = [_of_oci(cloud, statements) for statements in (policy.statements, [*policy.statements, after])]
        change = models.UpdatePolicyDetails(statements=[*policy.statements, after])
        deployer.identity.update_policy(policy.id, change)
        assert passes(call)
        deployer.identity.update_policy(policy.id, models.UpdatePolicyDetails(statements=policy.statements))
        assert not passes(call)
        return sentences(*sides)

    who = "group scientists may"
    assert widened(
        f"allow group scientists to read objects {IN}", lambda: user.storage.get_object(namespace, "theirs", "a")
    ) == [f"{who} list and read objects: any other bucket {IN} (its OCID is not known here)"]
    written = widened(
        f"allow group scientists to manage objects {IN} where target.bucket.name = /our*/",
        lambda: user.storage.put_object(namespace, "ours", "b", b"1"),
    )
    assert any(one.startswith(f"{who} create, overwrite") and "bucket ours" in one for one in written), written
    found = widened("allow any-user to inspect vcns in tenancy", lambda: user.network.list_vcns(cloud.compartment))
    assert found == ["everybody may read VCNs: the whole tenancy"]


def _of_oci(cloud: Cloud, statements: list[str]) -> Snapshot:
    policy = resource("oci:Identity/policy:Policy", "p", compartmentId=cloud.tenancy, statements=statements)
    return Snapshot("dev", "oci", {"tenancy": cloud.tenancy, "compartment": cloud.compartment}, (policy,))


def test_gains_in_a_review_match_the_decisions_of_the_local_aws(cloud: Cloud) -> None:
    deployer, user = AwsClients(cloud), AwsClients(cloud, "user")
    for name in ("ours", "theirs"):
        deployer["s3"].create_bucket(Bucket=name)
        deployer["s3"].put_object(Bucket=name, Key="a", Body=b"1")
    before = [_allow("s3:GetObject", "arn:aws:s3:::ours/*")]
    widenings = {
        "objects in bucket theirs": (
            _allow("s3:GetObject", "arn:aws:s3:::theirs/*"),
            lambda: user["s3"].get_object(Bucket="theirs", Key="a"),
        ),
        "write": (
            _allow("s3:Put*", "arn:aws:s3:::ours/*"),
            lambda: user["s3"].put_object(Bucket="ours", Key="b", Body=b"1"),
        ),
        "everything": (_allow("ec2:Describe*", "*"), lambda: user["ec2"].describe_vpcs()),
    }
    for word, (more, call) in widenings.items():
        _put(deployer, before)
        assert not passes(call)
        _put(deployer, [*before, more])
        assert passes(call), word
        found = sentences(_of_aws(before), _of_aws([*before, more]))
        assert [one for one in found if one.startswith("group scientists may") and word in one], found


def _allow(action: str, on: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": on}


def _put(deployer: AwsClients, statements: list[dict[str, Any]]) -> None:
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    deployer["iam"].put_group_policy(GroupName="scientists", PolicyName="test", PolicyDocument=document)


def _of_aws(statements: list[dict[str, Any]]) -> Snapshot:
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    policy = resource("aws:iam/groupPolicy:GroupPolicy", "p", group="scientists", name="test", policy=document)
    return Snapshot("dev", "aws-dl1", {}, (policy,))
