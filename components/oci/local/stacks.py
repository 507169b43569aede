# SPDX-License-Identifier: Apache-2.0
"""OCI, as stacks on the local cloud ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.oci.local import removal
from components.oci.local.removal import RemovalReader, empty_buckets, end_other_runs, list_results, read_last_lines
from components.oci.local.stack import ready_images, stand_in
from components.oci.local.stand_ins import StandIns
from components.oci.plan import oci_plan
from components.plan.model import Plan, RunPlan
from components.platform.calls import Tell
from components.platform.local import LocalCloud, LocalFile, LocalPlatform, Outputs, Removal, Row, State
from schemas.names import plural


class OciLocalPlatform(LocalPlatform):
    job_type = "trainyard:oci:Job"
    client = "the OCI CLI"
    shown_outputs: tuple[tuple[str, str], ...] = (
        ("bucketUri", "bucket"),
        ("imagePushAddress", "images"),
        ("subnetId", "subnet"),
    )

    def lost_with_job(self, runs: int) -> str:
        return f"OCI deletes the job with the records of its {plural(runs, 'run')}"

    def describe_resource(self, row: Row) -> str:
        return removal.describe_resource(row)

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        return removal.is_named(row, own, by, inputs)

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        stand_in(made, plan, cloud, StandIns(cloud, tell, oci_plan(plan).network))

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        data = RemovalReader(cloud, tell)
        StandIns(cloud, tell).remove(lambda kind, name: kind == "bucket" and not with_data and data.has_objects(name))

    def ready_images(self, cloud: LocalCloud, plan: Plan, borrowed: str) -> None:
        ready_images(cloud, plan, borrowed)

    def read_last_lines(self, cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
        return read_last_lines(cloud, run_id, tell)

    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        return list_results(cloud, str(outputs.get("bucket", "")), run, nodes, tell)

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        return RemovalReader(cloud, tell).describe_removal(rows, kept)

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        return list(RemovalReader(cloud, tell).list_data())

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        end_other_runs(cloud, rows, tell)

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        return empty_buckets(cloud, rows, tell)
