# SPDX-License-Identifier: Apache-2.0
"""The users of a stack as AWS principals that have only the access that the stack gives, and their calls around
runs."""

from __future__ import annotations

import configparser
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from catalog.aws import accelerator_of_machine, aws_machine
from components.aws.client.aws_session import DEPLOYER, USER, ask_aws, local_aws_session
from components.aws.client.runs import AwsRuns
from components.aws.client.ticket_tries import newest_code
from components.aws.local.stacks import least_access
from components.aws.plan import AwsAccessPlan, AwsDl1Plan, AwsJobPlan
from components.aws.run_inputs import aws_run_inputs
from components.plan.model import Plan, RunPlan
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of
from components.platform.rehearsal import People, Placeholders, RehearsedConfig
from components.platform.values import Properties
from components.s3 import Session
from localcloud.aws.account import ACCOUNT
from localcloud.files import write_secret
from schemas.model import Secret

_SESSION, _CREDENTIALS = "rehearsal", "rehearsal-credentials"
PROCESSES = "processes"


def aws_people(cloud: LocalCloud, plan: AwsDl1Plan, granted: AwsAccessPlan) -> People:
    """`granted`: the plan that grants access, of this stack or of the one that it uses."""
    deployer = local_aws_session(cloud, DEPLOYER, plan.region)
    if granted.users_group:
        deployer.client("iam").add_user_to_group(GroupName=granted.users_group, UserName=USER)
        user = local_aws_session(cloud, USER, plan.region)
        return _people_with_session(user, plan, f"a user of the group {granted.users_group}", USER)
    if granted.users_role:
        session = _session_in_role(cloud, deployer, granted.users_role, plan.region)
        return _people_with_session(session, plan, f"the role {granted.users_role}", None)
    return _people_with_session(deployer, plan, "the deployer", DEPLOYER)


def _people_with_session(session: Session, plan: AwsDl1Plan, words: str, profile: str | None) -> People:
    return People(session, AwsRuns(session, plan.bucket.name), words, profile)


def _session_in_role(cloud: LocalCloud, deployer: Session, role: str, region: str) -> Session:
    """A session of the users' role, which is a stand-in here. Its trust policy is changed to allow it; in the company's
    account, the real role's own trust policy decides."""
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


def act_as_aws_people(who: People, outputs: Mapping[str, Any]) -> None:
    """Makes the calls that users make around their runs. The cloud records which ones were refused."""
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
        _try_call(call)


def look_at_logs_and_metrics(who: People, outputs: Mapping[str, Any]) -> None:
    """The calls after a run."""
    group = outputs.get("logGroup")
    if group:
        logs = who.session.client("logs")
        _try_call(lambda: logs.describe_log_streams(logGroupName=group))
        _try_call(lambda: logs.filter_log_events(logGroupName=group, limit=1))
    _try_call(who.session.client("cloudwatch").list_metrics)


def _try_call(call: Callable[[], Any]) -> None:
    """Makes a call. A refusal is evidence, so it does not end the rehearsal."""
    from botocore.exceptions import ClientError

    try:
        call()
    except ClientError:
        return


def plan_that_grants_access(plan: AwsDl1Plan, used: Plan | None) -> tuple[Plan, list[str]]:
    """The plan that grants access: this stack's, that of the stack that it uses, or one for a stand-in."""
    if plan.access.create:
        return plan, []
    if used is not None and "access" in plan.taken:
        return used, []
    return least_access(plan), []


def aws_placeholders(outputs: Mapping[str, Any]) -> Placeholders:
    """The values of AWS's placeholders, after `up`."""
    return Placeholders({"registry": str(outputs["imagePushAddress"]), "bucket": str(outputs["bucketUri"])})


def keep_secrets(deployer: Session, plan: AwsDl1Plan) -> None:
    """Stores the secret variables of runs in Secrets Manager, as `up` does when it starts runs."""
    for job in plan.jobs.values():
        for run in job.runs.values():
            if not _has_secrets(run):
                continue
            # It needs Pulumi, which takes seconds to import.
            from components.aws.resources.access import secret_variables

            text = secret_variables(run) or "{}"
            put = partial(
                deployer.client("secretsmanager").create_secret, Name=_run_secret_name(job, run), SecretString=text
            )
            # Without progress: calls to a new local cloud are fast.
            ask_aws(lambda line: None, f"Keep the secret variables of {job.name}/{run.name}", put)


def _has_secrets(run: RunPlan) -> bool:
    return any(isinstance(value, Secret) for node in run.nodes for value in node.environment.values())


def _run_secret_name(job: AwsJobPlan, run: RunPlan) -> str:
    return f"{job.cluster.name}/runs/{run.name}"


def rehearsed_inputs(
    who: People, plan: AwsDl1Plan, job: AwsJobPlan, run: RunPlan, outputs: Mapping[str, Any], answers: Placeholders,
    tell: Tell,
) -> Properties:  # fmt: skip
    code = None
    # If these users may not read the bucket, starting the run reports why.
    with suppress(ProviderError):
        code = newest_code(who.session, call_of("rehearse", tell), str(outputs["bucket"]), job.called)
    where = {
        "bucket": outputs["bucket"],
        "logGroup": outputs.get("logGroup"),
        "secret": _run_secret_name(job, run) if _has_secrets(run) else None,
        "code": code,
    }
    return aws_run_inputs(plan, job, run, where, answers)


def small_machines(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """Implements `trainyard.rehearsal.mapping.Machines`. The instance type stays: the local cloud has it."""
    job = plan.jobs[name]
    made.not_rehearsed.setdefault(name, []).extend(_stood_for(job.shape.name))
    made.differences.append(f"job {name}: a share of this machine stands in for each {job.shape.name}")
    options = entry.get("options") or {}
    many = options.get(PROCESSES)
    if isinstance(many, int) and many > 1:
        entry["options"] = {**options, PROCESSES: 1}
        made.differences.append(f"job {name}: one process on each machine, in place of {many}")


def _stood_for(instance_type: str) -> Iterator[str]:
    """What of a machine a rehearsal cannot show."""
    machine, accelerator = aws_machine(instance_type), accelerator_of_machine(instance_type)
    if machine and accelerator and machine.accelerators:
        backend = accelerator.backends[0].upper()
        yield f"{backend} on {accelerator.words}: this machine has none; gloo carries the tensors between processors"
    if machine and machine.efa_interfaces:
        yield "EFA: one virtual interface stands in for those of a machine; the security group's rules hold on it"
    runtime = f" with the runtime {accelerator.runtime}" if accelerator and accelerator.runtime else ""
    yield f"docker{runtime}, and the container image: an environment of this machine stands in"
    yield "the machine image with its drivers: a namespace that carries out the user data stands in"
