# SPDX-License-Identifier: Apache-2.0
"""The interface of a platform for rehearsals, and its values."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.platforms import Capability
from components.plan.model import JobPlan, Plan, RunPlan, expand_references
from components.platform.calls import LocalCloud, Tell
from components.platform.client import Runs
from components.platform.evidence import AccessFacts, Mutation, PlannedNeeds, RecordedCall
from components.platform.local import LocalPlatform, LocalStackError, Outputs, Row
from components.platform.runs import NodeRun
from components.platform.values import Properties
from schemas.model import EnvValue, Secret


@dataclass(frozen=True)
class People:
    """The users who start the runs. `session` is the platform's own. `runs`: their client of runs. `words`: their name
    in a report."""

    session: Any
    runs: Runs
    words: str
    profile: str | None


@dataclass(frozen=True)
class Placeholders:
    """The values of placeholders that are known only when the stack is up."""

    values: Mapping[str, str]

    def fill(self, text: str) -> str:
        return expand_references(text, self.values)

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, str]:
        return {
            name: value.value or "" if isinstance(value, Secret) else expand_references(value, self.values)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> str:
        return expand_references(json.dumps(value, sort_keys=True, separators=(",", ":")), self.values)


@dataclass(frozen=True)
class StartedRun:
    """The result of starting a run. `refused` says why it did not start, or is ""."""

    job: JobPlan
    run: RunPlan
    nodes: tuple[NodeRun, ...] = ()
    refused: str = ""


@dataclass
class RehearsedConfig:
    """The configuration to rehearse, and its differences from the written one."""

    config: dict[str, Any]
    differences: list[str] = field(default_factory=list)
    # By job: the reason why it cannot be rehearsed here.
    not_rehearsed: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Artifact:
    """An object that a run left in the bucket. `local_only`: a real cloud would lose the file."""

    name: str
    bytes: int
    local_only: bool = False


class RehearsalPlatform(Capability, ABC):
    """The interface of a platform for rehearsals. Methods with a body are defaults that platforms inherit."""

    place = "local.rehearsal.REHEARSAL"
    lacking = LocalPlatform.lacking
    error = LocalStackError
    # The keys of a stack file that say where a stack is. A stand-in for the stack that it uses gets the same.
    place_keys: tuple[str, ...]
    # The faults of rehearsals that runs of the platform never have, each with the reason.
    impossible_faults: Mapping[str, str] = {}

    @abstractmethod
    def machines(self, made: RehearsedConfig, name: str, plan: Plan, entry: dict[str, Any]) -> None:
        """Shrinks a job of the stack file to this machine, and notes the differences in `made`."""

    @abstractmethod
    def stand_in_access(self, cloud: LocalCloud, plan: Plan, used: Plan | None) -> tuple[Plan, list[str]]:
        """The plan that grants access, and remarks on stand-ins that were made."""

    def stand_in_groups(self, cloud: LocalCloud, plan: Plan) -> Iterator[str]:
        """Makes stand-ins for groups that the stack names and that exist elsewhere, with a remark for each."""
        return iter(())

    @abstractmethod
    def people_of(self, cloud: LocalCloud, plan: Plan, granted: Plan, outputs: Outputs) -> People:
        """The users who start the runs. `granted` is the plan that grants them access."""

    @abstractmethod
    def planned_needs(self, plan: Plan, network_of: Plan, access_of: Plan) -> PlannedNeeds:
        """The rules and statements of the plans. Network and access may come from other stacks' plans."""

    @abstractmethod
    def act_as_people(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """Makes the calls that users make before they start runs, so that their permissions are exercised too."""

    @abstractmethod
    def look_after_runs(self, who: People, cloud: LocalCloud, outputs: Outputs) -> None:
        """Makes the calls that users make after a run, such as reading logs."""

    @abstractmethod
    def answers(self, cloud: LocalCloud, outputs: Outputs, rows: Sequence[Row], folder: Path) -> Placeholders:
        """The values of placeholders. `rows` are the stack's resources; its file is in `folder`."""

    @abstractmethod
    def inputs(
        self, who: People, plan: Plan, job: JobPlan, run: RunPlan, outputs: Outputs, answers: Placeholders, tell: Tell
    ) -> Properties:
        """The inputs of a run that these users start, as `up` would give them."""

    @abstractmethod
    def caller(self, cloud: LocalCloud, who: People) -> str:
        """The id of these users in the cloud's record of calls."""

    @abstractmethod
    def artifacts(self, cloud: LocalCloud, who: People, outputs: Outputs, started: StartedRun) -> Iterator[Artifact]:
        """The objects that a run left in the bucket, listed with the users' own permissions."""

    def hosts(self, outputs: Outputs, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        """Maps the id of each node's run to the machine's id in the local cloud's evidence.

        Both are the same if each run has its own machines.
        """
        return {node.id: node.id for node in nodes}

    def peers(self, cloud: LocalCloud, outputs: Outputs) -> Mapping[str, str]:
        """The names of the ids that rules use for their peers."""
        return {}

    @abstractmethod
    def judged_calls(self, cloud: LocalCloud) -> list[Mapping[str, Any]]:
        """The calls that the stack's own policies decided."""

    @abstractmethod
    def read_call(self, row: Mapping[str, Any], names: Mapping[str, str]) -> RecordedCall:
        """Reads a row of `judged_calls`. `names` are names of callers in reports, by the id of the user or machine."""

    @abstractmethod
    def access_facts(self, cloud: LocalCloud) -> AccessFacts:
        """The facts that decide access: the policies in force."""

    def why_without_fault(self, fault: str, job: JobPlan) -> str:
        """Why a job's runs cannot be disturbed in this way; empty if they can."""
        return self.impossible_faults.get(fault, "")

    @abstractmethod
    def without(self, cloud: LocalCloud, mutation: Mutation) -> AbstractContextManager[None]:
        """The cloud without one rule or statement, as long as the context lasts."""
