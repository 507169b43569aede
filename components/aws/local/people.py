# SPDX-License-Identifier: Apache-2.0
"""The users of a stack as AWS principals that have only the access that the stack gives, and their calls around
runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from catalog.aws import accelerator_of_machine, aws_machine
from components.aws.client.aws_session import DEPLOYER, USER, ask_aws, local_aws_session
from components.aws.client.runs import AwsRuns
from components.aws.client.ticket_tries import newest_code
from components.aws.local.stacks import least_access
from components.aws.plan import aws_dl1_job, aws_dl1_plan
from components.aws.run_inputs import aws_run_inputs, run_secret_name, secret_variables
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of
from components.platform.local import Outputs, Row
from components.platform.rehearsal import People, Placeholders, RehearsalPlatform, RehearsedConfig
from components.platform.values import Properties
from components.s3 import Session
from localcloud.aws.account import ACCOUNT, write_sections

_SESSION, _CREDENTIALS = "rehearsal", "rehearsal-credentials"
PROCESSES = "processes"


class AwsPeople(RehearsalPlatform):
    """The users of a rehearsed stack, and their runs."""

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        """The instance type stays: the local cloud has it."""
        job = plan.jobs[name]
        made.not_rehearsed.setdefault(name, []).extend(_stood_for(job.shape.name))
        made.differences.append(f"job {name}: a share of this machine stands in for each {job.shape.name}")
        options = entry.get("options") or {}
        many = options.get(PROCESSES)
        if isinstance(many, int) and many > 1:
            entry["options"] = {**options, PROCESSES: 1}
            made.differences.append(f"job {name}: one process on each machine, in place of {many}")

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        own = aws_dl1_plan(plan)
        if own.access.create:
            return plan, []
        if used is not None and "access" in own.taken:
            return used, []
        return least_access(own), []

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        """Also stores the secret variables of runs in Secrets Manager, as `up` does when it starts runs."""
        own, access = aws_dl1_plan(plan), aws_dl1_plan(granted).access
        deployer = local_aws_session(cloud, DEPLOYER, plan.region)
        secrets = deployer.client("secretsmanager")
        for job in own.jobs.values():
            for run in job.runs.values():
                if text := secret_variables(run):
                    keep = partial(secrets.create_secret, Name=run_secret_name(job, run), SecretString=text)
                    # Without progress: calls to a new local cloud are fast.
                    ask_aws(lambda line: None, f"Keep the secret variables of {job.name}/{run.name}", keep)
        session, words, profile = deployer, "the deployer", DEPLOYER
        if access.users_group:
            deployer.client("iam").add_user_to_group(GroupName=access.users_group, UserName=USER)
            session, profile = local_aws_session(cloud, USER, plan.region), USER
            words = f"a user of the group {access.users_group}"
        elif access.users_role:
            session, profile = _session_in_role(cloud, deployer, access.users_role, plan.region), ""
            words = f"the role {access.users_role}"
        return People(session, AwsRuns(session, own.bucket.name), words, profile or None)

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
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

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        group = outputs.get("logGroup")
        if group:
            logs = who.session.client("logs")
            _try_call(lambda: logs.describe_log_streams(logGroupName=group))
            _try_call(lambda: logs.filter_log_events(logGroupName=group, limit=1))
        _try_call(who.session.client("cloudwatch").list_metrics)

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        return Placeholders({"registry": str(outputs["imagePushAddress"]), "bucket": str(outputs["bucketUri"])})

    def inputs(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Placeholders, tell: Tell
    ) -> Properties:
        own, code = aws_dl1_job(job), None
        # If these users may not read the bucket, starting the run reports why.
        with suppress(ProviderError):
            code = newest_code(who.session, call_of("rehearse", tell), str(outputs["bucket"]), job.called)
        where = {
            "bucket": outputs["bucket"],
            "logGroup": outputs.get("logGroup"),
            "secret": run_secret_name(own, run) if secret_variables(run) else None,
            "code": code,
        }
        return aws_run_inputs(aws_dl1_plan(plan), own, run, where, answers)

    def caller(self, cloud: LocalCloud, who: People) -> str:
        return str(who.session.client("sts").get_caller_identity()["Arn"])


def _session_in_role(cloud: LocalCloud, deployer: Session, role: str, region: str) -> Session:
    """A session of the users' role, which is a stand-in here. Its trust policy is changed to allow it; in the company's
    account, the real role's own trust policy decides."""
    arn = f"arn:aws:iam::{ACCOUNT}"
    trust = {"Effect": "Allow", "Principal": {"AWS": f"{arn}:user/{DEPLOYER}"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    deployer.client("iam").update_assume_role_policy(RoleName=role, PolicyDocument=document)
    made = deployer.client("sts").assume_role(RoleArn=f"{arn}:role/{role}", RoleSessionName=_SESSION)["Credentials"]
    keys = {"aws_access_key_id": made["AccessKeyId"], "aws_secret_access_key": made["SecretAccessKey"]}
    file = cloud.home / _CREDENTIALS
    write_sections(file, {_SESSION: {**keys, "aws_session_token": made["SessionToken"]}})
    env = {**cloud.env_for(USER), "AWS_SHARED_CREDENTIALS_FILE": str(file), "AWS_PROFILE": _SESSION}
    return Session.of({"region": region}, env)


def _try_call(call: Callable[[], Any]) -> None:
    """Makes a call. A refusal is evidence, so it does not end the rehearsal."""
    from botocore.exceptions import ClientError

    try:
        call()
    except ClientError:
        return


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
