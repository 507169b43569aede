# SPDX-License-Identifier: Apache-2.0
"""What stacks on the local cloud need to know of the platform they are made for, and the values that both speak in:
files, states, what a removal takes, what a run shows at its end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from components.plan.model import Plan, RunPlan
from components.platform.calls import ProviderError, Tell
from components.platform.local_cloud import LocalCloud
from components.platform.status import duration, shorten

Row = Mapping[str, Any]

# The project that local stacks are of.
PROJECT_NAME = "trainyard"
Config = dict[str, Any]
Outputs = Mapping[str, Any]
# How many of a node's last lines are asked for, to find the program's own among them.
LINES_READ = 100
NOT_READ = "(what it printed could not be read just now)"
# What a program writes for people to see at a glance. A longer one is only named.
_RESULT = "result.json"
_LONGEST_BYTES = 2000
_MOST_NAMED = 20

# The launcher's marks on its own lines and on those of the framework's services.
_LAUNCHER = re.compile(r"^\[\d+\.launcher\] ")
# The first of its lines about files that go with the node (launcher/losses.py). The last one says how to keep them.
_LOST = "that training made will be lost with this node:"
_BESIDE = re.compile(r"^\[\d+(\.\w+)*\.(service|rendezvous|launcher)\] ")


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, and when it began."""

    title: str
    state: str
    since: datetime

    def __str__(self) -> str:
        return f"{self.title}: {self.state} for {duration((datetime.now(UTC) - self.since).total_seconds())}"


def data_line(noun: str, name: str, inside: str) -> str:
    """A bucket or repository, and what is in it."""
    return f"{noun:8} {name}{f' with its {inside}' if inside else ', which is empty'}"


@dataclass(frozen=True)
class Removal:
    """`live` runs will be ended. `lines` describe what else goes or stays, and what is in it."""

    live: tuple[LiveRun, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """One stack: its project and name, and all that Pulumi keeps of it."""

    project: str
    stack: str
    rows: Sequence[Row]

    def made(self) -> Iterator[Row]:
        """What the stack made and has not removed yet; not what it only reads."""
        return (row for row in self.rows if row.get("custom") and row.get("id") and not row.get("external"))

    def outputs(self) -> Mapping[str, Any]:
        return next((row.get("outputs") or {} for row in self.rows if row["type"] == "pulumi:pulumi:Stack"), {})

    def provider(self, package: str) -> Row | None:
        """The provider of a cloud, if the stack has resources there or reads some."""
        return next((row for row in self.rows if row["type"] == f"pulumi:providers:{package}"), None)


def states(folder: Path) -> list[State]:
    """Every stack of a file backend, by the folder with its projects. One that is being written is left out."""
    every = []
    for file in sorted(folder.glob("*/*.json"), key=lambda file: (file.parent.name, file.stem)):
        try:
            latest = json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {}
        except (OSError, ValueError, KeyError):
            continue
        every.append(State(file.parent.name, file.stem, latest.get("resources") or ()))
    return every


def deployed_files(cloud_home: Path) -> dict[str, Path]:
    """The stacks of the local backend beside this cloud, each with the file that it was brought up from.

    That is a copy: the team's own file may be elsewhere, gone, or changed since, even to another platform.
    """
    folder = cloud_home.parent / "pulumi"
    every = states(folder / "state" / ".pulumi" / "stacks")
    own = [one.stack for one in every if one.project == PROJECT_NAME and any(one.made())]
    copies = {stack: folder / "stacks" / f"Pulumi.{stack}.yaml" for stack in own}
    return {stack: copy for stack, copy in copies.items() if copy.is_file()}


def has_address(text: str, address: str) -> bool:
    """Whether an address is in the text as a whole, or with a tag or digest of an image, or a path below it."""
    return re.search(rf"(?<![\w./-]){re.escape(address)}(?![\w.-])", text) is not None


def name_of(row: Row) -> str:
    """What the resource is called in the cloud."""
    values = row.get("outputs") or row.get("inputs") or {}
    return str(values.get("name") or values.get("displayName") or row["urn"].rpartition("::")[2])


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
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
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


class LocalStackError(Exception):
    """What keeps a stack from coming up, going down or being rehearsed here. Its text is the whole message."""


def reporting_nodes(run: RunPlan, nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes whose last lines show how the run went: they run the team's program, or they failed."""
    commanding = {node.name for node in run.nodes if node.launch.get("command")}
    return [node for node in nodes if node["name"] in commanding or node["state"] == "FAILED"]


def own_lines(printed: Sequence[str]) -> list[str]:
    """The lines of the team's own program. All lines if it printed none."""
    return [line for line in printed if not _BESIDE.match(line)] or list(printed)


def lost_lines(printed: Sequence[str]) -> list[str]:
    """What the launcher said of files that nobody keeps."""
    spoken = [_LAUNCHER.sub("", line) for line in printed if _LAUNCHER.match(line)]
    first = next((number for number, line in enumerate(spoken) if line.endswith(_LOST)), len(spoken))
    last = next((number for number in range(first + 1, len(spoken)) if not spoken[number].startswith("  ")), first)
    return spoken[first : last + 1]


def attempt_folder(run: RunPlan) -> str:
    """Where the starts of this attempt leave what they make, below the bucket. Empty if they leave nothing."""
    launch = run.nodes[0].launch if run.nodes else {}
    return str(launch.get("folder") or "").removeprefix("${bucket}/")


def named_results(listed: Callable[[], Sequence[tuple[str, int]]], read: Callable[[str], bytes]) -> Iterator[str]:
    """The files that a start has left, each with its size, and what its result says."""
    try:
        files = listed()
        for name, size in files[:_MOST_NAMED]:
            yield f"{name}, {size} bytes"
            if name.endswith(_RESULT) and size <= _LONGEST_BYTES:
                yield f"  {json.dumps(shorten(json.loads(read(name))), allow_nan=False)}"
        if len(files) > _MOST_NAMED:
            yield f"and {len(files) - _MOST_NAMED} more"
    except (ProviderError, OSError, ValueError, RecursionError):
        # The stack is up all the same.
        yield "(what it left could not be read just now)"
