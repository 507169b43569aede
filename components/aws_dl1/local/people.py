# SPDX-License-Identifier: Apache-2.0
"""The people of a stack as AWS knows them, with no more access than it gives them, and what they do around runs."""

from __future__ import annotations

import configparser
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from components.aws_dl1.local.sessions import DEPLOYER, USER, session_of
from components.aws_dl1.plan import AwsAccessPlan, AwsDl1Plan
from components.platform.local_cloud import LocalCloud
from components.platform.rehearsed_runs import People
from components.s3.session import Session
from localcloud.aws.account import ACCOUNT
from localcloud.files import write_secret

_SESSION, _CREDENTIALS = "rehearsal", "rehearsal-credentials"


def people_of(cloud: LocalCloud, plan: AwsDl1Plan, granted: AwsAccessPlan) -> People:
    """`granted` says to whom access is given: in the stack, or in the one it takes its access from."""
    deployer = session_of(cloud, DEPLOYER, plan.region)
    if granted.users_group:
        deployer.client("iam").add_user_to_group(GroupName=granted.users_group, UserName=USER)
        return People(session_of(cloud, USER, plan.region), f"a user of the group {granted.users_group}", USER)
    if granted.users_role:
        return People(
            _in_role(cloud, deployer, granted.users_role, plan.region), f"the role {granted.users_role}", None
        )
    return People(deployer, "the deployer", DEPLOYER)


def _in_role(cloud: LocalCloud, deployer: Session, role: str, region: str) -> Session:
    """A session of the role. Its stand-in trusts nobody yet; the company's says itself who takes it on."""
    arn = f"arn:aws:iam::{ACCOUNT}"
    trust = {"Effect": "Allow", "Principal": {"AWS": f"{arn}:user/{DEPLOYER}"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    deployer.client("iam").update_assume_role_policy(RoleName=role, PolicyDocument=document)
    made = deployer.client("sts").assume_role(RoleArn=f"{arn}:role/{role}", RoleSessionName=_SESSION)["Credentials"]
    config = configparser.ConfigParser(interpolation=None)
    config[_SESSION] = {
        "aws_access_key_id": made["AccessKeyId"],
        "aws_secret_access_key": made["SecretAccessKey"],
        "aws_session_token": made["SessionToken"],
    }
    text, file = io.StringIO(), cloud.home / _CREDENTIALS
    config.write(text)
    write_secret(file, text.getvalue().encode())
    env = {**cloud.env_for(USER), "AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": _SESSION}
    return Session.of({"region": region}, env)


def act_as_people(who: People, outputs: Mapping[str, Any]) -> None:
    """Make the calls that people make around their runs. The cloud's record of calls says which were refused."""
    bucket, name = str(outputs["bucket"]), ".trainyard-rehearsal"
    repository = str(outputs["imagePushAddress"]).partition("/")[2]
    storage, images = who.session.client("s3"), who.session.client("ecr")
    layer = "sha256:" + "0" * 64
    calls: list[Callable[[], Any]] = [
        lambda: storage.head_bucket(Bucket=bucket),
        lambda: storage.put_object(Bucket=bucket, Key=name, Body=b"a"),
        lambda: storage.head_object(Bucket=bucket, Key=name),
        lambda: storage.get_object(Bucket=bucket, Key=name)["Body"].read(),
        lambda: storage.list_objects_v2(Bucket=bucket),
        lambda: storage.list_multipart_uploads(Bucket=bucket),
        lambda: storage.delete_object(Bucket=bucket, Key=name),
        images.get_authorization_token,
        lambda: images.describe_repositories(repositoryNames=[repository]),
        lambda: images.describe_images(repositoryName=repository),
        lambda: images.batch_check_layer_availability(repositoryName=repository, layerDigests=[layer]),
        who.session.client("ec2").describe_instances,
        who.session.client("ssm").describe_instance_information,
    ]
    instances = [one for job in (outputs.get("jobs") or {}).values() for one in job["instances"].values()]
    if instances:
        calls.append(lambda: who.session.client("ssm").start_session(Target=instances[0]))
    for call in calls:
        _try(call)


def look_at_logs_and_metrics(who: People, outputs: Mapping[str, Any]) -> None:
    """After a run."""
    group = outputs.get("logGroup")
    if group:
        logs = who.session.client("logs")
        _try(lambda: logs.describe_log_streams(logGroupName=group))
        _try(lambda: logs.filter_log_events(logGroupName=group, limit=1))
    _try(who.session.client("cloudwatch").list_metrics)


def _try(call: Callable[[], Any]) -> None:
    """Make a call. A refusal is evidence, so it does not end the rehearsal."""
    from botocore.exceptions import ClientError

    try:
        call()
    except ClientError:
        return
