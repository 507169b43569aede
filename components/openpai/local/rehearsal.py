# SPDX-License-Identifier: Apache-2.0
"""OpenPAI for rehearsals, and the results of a rehearsal on the cluster: files on its storage, and last lines of
logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.openpai.client.runs import OpenPaiRuns
from components.openpai.client.storages import Storages, storages_folder
from components.openpai.local.stacks import USER, local_cluster_session, output_folder
from components.openpai.plan import OpenPaiPlan, openpai_job, openpai_plan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.model import JobPlan, Plan, RunPlan, expand_references
from components.platform.calls import LocalCloud, Tell
from components.platform.evidence import (
    LostCall,
    Mutation,
    PlannedNeeds,
    PolicyInForce,
    RecordedCall,
    StatementMutation,
)
from components.platform.local import Outputs, Row
from components.platform.rehearsal import Artifact, People, Placeholders, RehearsalPlatform, RehearsedConfig, StartedRun
from components.platform.values import Properties

SKUS = "trainyard:skus"
PROCESSES, BACKEND = "processes", "backend"
_NO_GPUS = "GPUs: this machine has none; it trains on CPUs"
_NCCL = "NCCL: this machine has no GPU; gloo carries the tensors"
_SMALL = {"gpus": 0, "cpus": 1, "memoryGb": 4, "shmMb": 1024}
# Settings of the hived scheduler, which the local cluster does not have.
_HIVED = ("sku", "pinnedCellId")
# What a local cluster cannot prove.
NOT_PROVEN = (
    "access: OpenPAI has no policies to remove; whether a cluster gives this user its virtual cluster and storage, "
    "only that cluster says",
    "ports: OpenPAI has no rules between tasks to remove; they reach one another on every port of their machines",
)


class OpenPaiRehearsalPlatform(RehearsalPlatform):
    place_keys = ("trainyard:cluster",)
    impossible_faults: Mapping[str, str] = {
        "rule closed": "OpenPAI has no rules between tasks",
        "store lost": "files go to a storage that each task has mounted, not to an object store",
        "no capacity": "a job waits until the cluster has room, and none is refused",
        "spot notice": "OpenPAI has no spot machines",
    }

    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        small_tasks(made, name, plan, entry)

    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        return plan, list(NOT_PROVEN)

    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        session = local_cluster_session(cloud, USER)
        runs = OpenPaiRuns(session, Storages(storages_folder(cloud.home)))
        return People(session, runs, f"the cluster's user {USER}, who administers nothing", USER)

    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        return PlannedNeeds(least=False, rules=(), statements=())

    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """Does nothing: OpenPAI has no policies that calls could test."""

    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """Does nothing, for the same reason."""

    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        return OpenPaiPlaceholders({}, folder)

    def inputs(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Placeholders, tell: Tell
    ) -> Properties:
        if not isinstance(answers, OpenPaiPlaceholders):
            raise TypeError(f"{type(answers).__name__} are another platform's")
        own, row = openpai_plan(plan), openpai_job(job)
        files = read_files(own, row, answers.stacks)
        inputs: dict[str, Any] = openpai_run_inputs(own, row, run, files, lambda secret: secret)
        return {**inputs, "cluster": {**inputs["cluster"], "user": who.session.user}}

    def caller(self, cloud: LocalCloud, who: People) -> str:
        return str(who.session.user)

    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        """The files that the current start has written to its output folder."""
        output = output_folder(cloud, started.nodes[0].id, lambda line: None) if started.nodes else None
        for name, size in (output.sizes() if output else {}).items():
            yield Artifact(name, size)

    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        return []

    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        raise NotImplementedError("OpenPAI judges no calls")

    def access_facts(self, cloud: LocalCloud) -> NoAccessFacts:
        return NoAccessFacts()

    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        raise NotImplementedError("OpenPAI has no rules or statements to remove")


def small_tasks(made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
    """Implements `trainyard.rehearsal.mapping.Machines`."""
    job = plan.jobs[name]
    # The job gets its own SKUs, because other jobs may use the same ones.
    own = {role: row for role, row in entry["roles"].items() if isinstance(row, dict) and row.get("shape")}
    names = dict.fromkeys([job.shape.name, *(row["shape"] for row in own.values())])
    written = {sku: made.config.get(SKUS, {}).get(sku) or {} for sku in names}
    called = {sku: f"rehearsal-{name}" + (f"-{sku}" if sku != job.shape.name else "") for sku in names}
    for sku, row in written.items():
        small = {key: min(value, _SMALL[key]) if key in _SMALL else value for key, value in row.items()}
        if small == row:
            called[sku] = sku
            continue
        made.config[SKUS] = {**made.config[SKUS], called[sku]: {key: small[key] for key in small if key not in _HIVED}}
        made.differences.append(f"job {name}: a share of this machine stands in for each {sku}")
    entry["shape"] = called[job.shape.name]
    entry["roles"] = {**entry["roles"], **{role: {**row, "shape": called[row["shape"]]} for role, row in own.items()}}
    if any(row.get("gpus") for row in written.values()):
        made.not_rehearsed.setdefault(name, []).append(_NO_GPUS)
    options = dict(entry.get("options") or {})
    if options.get(BACKEND) == "nccl":
        made.not_rehearsed.setdefault(name, []).append(_NCCL)
        options[BACKEND] = "gloo"
    many = options.get(PROCESSES)
    if isinstance(many, int) and many > 1:
        options[PROCESSES] = 1
        made.differences.append(f"job {name}: one process for each task, in place of {many}")
    if options:
        entry["options"] = options
    address = plan.registry_address if isinstance(plan, OpenPaiPlan) else ""
    image = expand_references(job.image, {"registry": address})
    made.differences.append(f"job {name}: {image} is not pulled: an environment of this machine stands in")


@dataclass(frozen=True)
class OpenPaiPlaceholders(Placeholders):
    """`stacks`: the folder of the stack file and of the jobs' code. Everything else that a job refers to is in the
    plan."""

    stacks: Path


@dataclass(frozen=True, slots=True)
class NoAccessFacts:
    """Implements `components.platform.evidence.AccessFacts`."""

    policies: tuple[PolicyInForce, ...] = ()

    def refused(self, calls: Sequence[RecordedCall], policies: Iterable[PolicyInForce]) -> tuple[LostCall, ...]:
        return ()

    def mutations(self) -> Iterator[StatementMutation]:
        return iter(())

    def inferred(self, call: RecordedCall) -> tuple[str, ...]:
        return ()


REHEARSAL = OpenPaiRehearsalPlatform()
