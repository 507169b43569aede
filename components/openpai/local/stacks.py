# SPDX-License-Identifier: Apache-2.0
"""OpenPAI, as stacks on the local cloud ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.openpai.local import removal, stack
from components.openpai.local.stack import stand_in
from components.plan.model import Plan, RunPlan
from components.platform.calls import Tell
from components.platform.local import LocalCloud, LocalFile, LocalPlatform, Outputs, Removal, Row, State, name_of
from schemas.names import plural


class OpenPaiLocalPlatform(LocalPlatform):
    job_type = "trainyard:openpai:Job"
    client = "any client of OpenPAI"
    shown_outputs: tuple[tuple[str, str], ...] = (("cluster", "cluster"), ("bucketUri", "storage"))

    def lost_with_job(self, runs: int) -> str:
        return f"{plural(runs, 'run')} of it no longer belong to the stack, and what they left stays on the storage"

    def describe_resource(self, row: Row) -> str:
        return f"{row['type'].rpartition(':')[2].lower()} {name_of(row)}"

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        """A run is all that a stack makes here, and no other stack names one."""
        return False

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        stand_in(made, cloud)

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        stack.remove_stand_ins(cloud, with_data)

    def read_last_lines(self, cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
        return removal.read_last_lines(cloud, run_id, tell)

    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        return removal.list_results(cloud, nodes, tell)

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        return removal.describe_removal(cloud, rows, tell)

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        return list(stack.list_storages(cloud))

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        removal.end_other_runs(cloud, rows, tell)

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        """No stack makes one here."""
        return 0
