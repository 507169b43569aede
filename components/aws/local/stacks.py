# SPDX-License-Identifier: Apache-2.0
"""AWS DL1, as stacks on the local cloud ask for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.aws.client.session import regions
from components.aws.local import removal
from components.aws.local.removal import describe_machines, empty_buckets
from components.aws.local.stack import stand_in
from components.aws.local.stand_ins import RECORD, StandIns
from components.aws.plan import aws_dl1_plan
from components.plan.model import Plan, RunPlan
from components.platform.calls import Tell
from components.platform.local import (
    LocalCloud,
    LocalFile,
    LocalPlatform,
    LocalStackError,
    Outputs,
    Removal,
    Row,
    State,
)
from localcloud.aws import account, kept
from localcloud.environments.debian import command_words
from schemas.names import plural


class AwsLocalPlatform(LocalPlatform):
    job_type = "trainyard:aws-dl1:Job"
    client = "the AWS CLI"
    shown_outputs: tuple[tuple[str, str], ...] = (
        ("bucketUri", "bucket"), ("imagePushAddress", "images"), ("subnetId", "subnet"),
    )  # fmt: skip

    def lost_with_job(self, runs: int) -> str:
        return f"its machines are terminated, and what {plural(runs, 'run')} left stays in the bucket"

    def describe_resource(self, row: Row) -> str:
        return removal.describe_resource(row)

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        return removal.is_named(row, own, by, inputs)

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        if plan.jobs and not shutil.which("ssh-keygen"):
            raise LocalStackError(
                "machines of the local AWS need ssh-keygen, which this machine lacks\n"
                f"As root: {command_words(['openssh-client'])}"
            )
        stand_in(made, aws_dl1_plan(plan), cloud, tell)

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        if (cloud.home / RECORD).exists():
            StandIns(cloud, tell, regions()[0]).remove(
                lambda kind, name: kind == "bucket" and not with_data and removal.has_objects(cloud, name, tell)
            )

    def read_last_lines(self, cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
        return removal.read_last_lines(cloud, run_id, tell)

    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        return removal.list_results(cloud, str(outputs.get("bucket", "")), run, nodes, tell)

    def machines(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> list[str]:
        return describe_machines(cloud, rows, tell)

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        return removal.describe_removal(cloud, rows, kept, tell)

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        # A cloud whose AWS nobody used has none, and it takes seconds to ask for the first time.
        used = kept.exists(account.folder(cloud.home))
        return list(removal.list_data(cloud, tell)) if used else []

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        removal.end_other_runs(cloud, rows, tell)

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        return empty_buckets(cloud, rows, tell)
