# SPDX-License-Identifier: Apache-2.0
"""What stacks on the local cloud need to know of the platform they are made for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from components.plan.model import Plan, RunPlan
from components.platform.calls import Tell
from components.platform.local_cloud import LocalCloud
from components.platform.removal import Removal
from components.platform.states import Row, State

Config = dict[str, Any]
Outputs = Mapping[str, Any]


@dataclass
class LocalFile:
    """The configuration to use, its secrets apart, and remarks on what differs from the team's file."""

    config: Config
    secrets: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    # Whether access that the file takes as there already was given here, too.
    has_access: bool = False


class LocalPlatform(Protocol):
    """What has a body is what most platforms answer: a platform's own class inherits it."""

    # The type of the component that is a job in a state.
    job_type: str
    # The client by which people look at the cloud, as a sentence names it.
    client: str
    # The outputs that `up` shows, each with its title.
    shown_outputs: tuple[tuple[str, str], ...]

    def lost_with_job(self, runs: int) -> str:
        """What happens to a job that is in the stack file no more: the beginning of a sentence."""

    def describe_resource(self, row: Row) -> str:
        """The name of a resource for people: `security list demo-local-nodes`."""

    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        """Whether the stack `by` names a resource of the stack `own`; `inputs` are those of all resources of `by`, as
        text. Stacks of other platforms may use the same names for other things, so a name alone says nothing."""

    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        """Makes what the stack file takes as there already, and changes the file so that it names that."""

    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        """Removes what was made so, of every stack: what holds data only with that."""

    def ready_images(self, cloud: LocalCloud, plan: Plan, borrowed: str) -> None:
        """Makes this machine stand in for every image that the plan names.

        `borrowed` is the address of another stack's images, where this one takes them from there. There is nothing to
        do where the machine that starts a container chooses the environment that stands in for its image.
        """
        return

    def read_last_lines(self, cloud: LocalCloud, run_id: str, tell: Tell) -> list[str]:
        """The last lines that a node's run printed."""

    def list_results(
        self,
        cloud: LocalCloud,
        outputs: Mapping[str, Any],
        run: RunPlan,
        nodes: Sequence[Mapping[str, Any]],
        tell: Tell,
    ) -> Iterator[str]:
        """What the present start of a run has left; `nodes` has the main one first."""

    def machines(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> list[str]:
        """The machines of a stack that stay between runs and cost as long as they are up: each with its state, and
        since when it is up. Empty if runs bring their machines with them."""
        return []

    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        """What is lost with the resources that go, and what stays with those that are kept."""

    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        """Everything in the cloud that holds data, whoever made it, with how much it holds."""

    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        """Ends what runs of the jobs among the resources that go, and is in no state, and waits for its end."""

    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        """Removes the objects of the buckets among the resources that go; how many there were."""
