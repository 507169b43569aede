# SPDX-License-Identifier: Apache-2.0
"""The interface of a platform for stacks on the local cloud, and its values: stack files, states, removals, and the
results of runs."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from catalog.platforms import Capability
from components.plan.model import Plan, RunPlan
from components.platform.calls import LocalCloud, ProviderError, Tell
from components.platform.runs import is_blank_line
from components.platform.status import duration_text, shorten_value

Row = Mapping[str, Any]

# The Pulumi project of local stacks.
PROJECT_NAME = "trainyard"
Config = dict[str, Any]
Outputs = Mapping[str, Any]
# A result that a program writes for people. It is shown whole if it is short.
_RESULT = "result.json"
_LONGEST_BYTES = 2000
_MOST_NAMED = 20
# The prefix of the largest network that clouds allow.
_LARGEST_NETWORK = 16

# The prefixes of the launcher's own lines and of lines of the framework's services.
_LAUNCHER = re.compile(r"^\[\d+\.launcher\] ")
# The first lines of its warnings about files that are lost with the node, or on a real cloud (launcher/losses.py).
_LOST = re.compile(r"that training made (will be lost with this node|would be lost on a real cloud;.*):$")
_BESIDE = re.compile(r"^\[\d+(\.\w+)*\.(service|rendezvous|launcher)\] ")


@dataclass(frozen=True)
class LiveRun:
    """A run that has not ended, and when it began."""

    title: str
    state: str
    since: datetime

    def __str__(self) -> str:
        return f"{self.title}: {self.state} for {duration_text((datetime.now(UTC) - self.since).total_seconds())}"


def data_line(noun: str, name: str, inside: str) -> str:
    """A line about a bucket or repository, and what is in it."""
    return f"{noun:8} {name}{f' with its {inside}' if inside else ', which is empty'}"


@dataclass(frozen=True)
class Removal:
    """What `down` removes. `live` runs will be ended. `lines` describe other things that are removed or kept."""

    live: tuple[LiveRun, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class State:
    """The state of one stack: its project, its name and its resources."""

    project: str
    stack: str
    rows: Sequence[Row]

    def made(self) -> Iterator[Row]:
        """The resources that the stack made and has not removed, without those that it only reads."""
        return (row for row in self.rows if row.get("custom") and row.get("id") and not row.get("external"))

    def outputs(self) -> Mapping[str, Any]:
        return next((row.get("outputs") or {} for row in self.rows if row["type"] == "pulumi:pulumi:Stack"), {})

    def provider(self, package: str) -> Row | None:
        """The stack's provider resource of this package, if it has one."""
        return next((row for row in self.rows if row["type"] == f"pulumi:providers:{package}"), None)


def states_in(folder: Path) -> list[State]:
    """The states of all stacks below the file backend's folder. A state that is just being written is left out."""
    every = []
    for file in sorted(folder.glob("*/*.json"), key=lambda file: (file.parent.name, file.stem)):
        try:
            latest = json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {}
            rows = tuple(dict(row) for row in latest.get("resources") or ())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        every.append(State(file.parent.name, file.stem, rows))
    return every


def stack_states_folder(cloud_home: Path) -> Path:
    """The states in the Pulumi backend beside a local cloud."""
    return cloud_home.parent / "pulumi" / "state" / ".pulumi" / "stacks"


def stacks_up(cloud_home: Path) -> list[str]:
    """The stacks in the backend of this cloud that have resources, also those that plain `pulumi` brought up."""
    every = states_in(stack_states_folder(cloud_home))
    return [one.stack for one in every if one.project == PROJECT_NAME and any(one.made())]


def deployed_files(cloud_home: Path, stacks: Path | None = None) -> dict[str, Path]:
    """The stacks in the backend of this cloud, each with the copy of the stack file that was deployed.

    The team's own file may have been moved, removed or changed since, even to another platform. Plain `pulumi` makes no
    copy: then the file is looked for in `stacks`.
    """
    found = {}
    for stack in stacks_up(cloud_home):
        places = (cloud_home.parent / "pulumi" / "stacks", *((stacks,) if stacks else ()))
        files = (place / f"Pulumi.{stack}.yaml" for place in places)
        if file := next((file for file in files if file.is_file()), None):
            found[stack] = file
    return found


def has_address(text: str, address: str) -> bool:
    """Whether the text has this address: alone, with an image's tag or digest, or with a path below it."""
    return re.search(rf"(?<![\w./-]){re.escape(address)}(?![\w.-])", text) is not None


def network_around(subnet: str) -> str:
    """The addresses of a network that stands in for one with this subnet: as many as clouds allow."""
    block = ip_network(subnet)
    return str(block.supernet(new_prefix=min(_LARGEST_NETWORK, block.prefixlen)))


def name_of_resource(row: Row) -> str:
    """The resource's name in the cloud."""
    values = row.get("outputs") or row.get("inputs") or {}
    return str(values.get("name") or values.get("displayName") or row["urn"].rpartition("::")[2])


@dataclass
class LocalFile:
    """The configuration to use, its secrets separately, and remarks on the differences from the team's file."""

    config: Config
    secrets: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    # Whether the local cloud has given the access that the file expects to exist already.
    has_access: bool = False


class LocalStackError(Exception):
    """An expected failure of `up`, `down` or `rehearse`. The text is the whole message for the user."""


class LocalPlatform(Capability, ABC):
    """The interface of a platform for stacks on the local cloud. Methods with a body are defaults that platforms
    inherit."""

    place = "local.stacks.LOCAL"
    lacking = "the stack runs on {platform}, which has no local cloud yet"
    error = LocalStackError
    # The resource type of a job's component in a state.
    job_type: str
    # The name of the client by which users look at the cloud, for use in a sentence.
    client: str
    # The outputs that `up` shows, each with its title.
    shown_outputs: tuple[tuple[str, str], ...]

    @abstractmethod
    def lost_with_job(self, runs: int) -> str:
        """What happens to a job that is no longer in the stack file: the beginning of a sentence."""

    @abstractmethod
    def describe_resource(self, row: Row) -> str:
        """The name of a resource for people: `security list demo-local-nodes`."""

    @abstractmethod
    def is_named(self, row: Row, own: State, by: State, inputs: str) -> bool:
        """Whether the stack `by` refers to a resource of the stack `own`. `inputs` has the inputs of all resources of
        `by` as text. The same name is not enough: on another platform it may be something else."""

    @abstractmethod
    def stand_in(self, made: LocalFile, plan: Plan, cloud: LocalCloud, tell: Tell) -> None:
        """Makes stand-ins for resources that the stack file expects to exist, and changes the file to name them."""

    @abstractmethod
    def remove_stand_ins(self, cloud: LocalCloud, tell: Tell, with_data: bool) -> None:
        """Removes the stand-ins of every stack. Those that hold data are removed only if `with_data` is set."""

    def ready_images(self, cloud: LocalCloud, plan: Plan, borrowed: str) -> None:
        """Makes a local stand-in for every image that the plan names.

        `borrowed` is the address of another stack's images, if this one uses them. The default does nothing: it is for
        platforms whose machines choose the environment when they start a container.
        """
        return

    @abstractmethod
    def list_results(
        self, cloud: LocalCloud, outputs: Outputs, run: RunPlan, nodes: Sequence[Mapping[str, Any]], tell: Tell
    ) -> Iterator[str]:
        """Lines about the results of a run's newest start. The main node is the first of `nodes`."""

    def machines(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> list[str]:
        """Lines about the machines that a stack keeps between runs, and that cost while they are up: state, and since
        when. Empty if each run has its own machines."""
        return []

    @abstractmethod
    def describe_removal(self, cloud: LocalCloud, rows: Sequence[Row], kept: Sequence[Row], tell: Tell) -> Removal:
        """What is lost with the resources that are removed (`rows`), and what stays with those that are `kept`."""

    @abstractmethod
    def list_data(self, cloud: LocalCloud, tell: Tell) -> list[str]:
        """Lines about everything in the cloud that holds data, whoever made it, with the amount."""

    @abstractmethod
    def end_other_runs(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> None:
        """Ends runs of the removed jobs that are in no state, such as tries, and waits until they have ended. If a
        bucket is removed, also ends those that are in a state: they would write into the emptied bucket."""

    @abstractmethod
    def empty_buckets(self, cloud: LocalCloud, rows: Sequence[Row], tell: Tell) -> int:
        """Removes the objects of the buckets among the removed resources, and returns how many there were."""


def ids_of_own_runs(rows: Sequence[Row], bucket_type: str) -> frozenset[str]:
    """The runs of a state that may go on until they are removed themselves: none if their bucket goes."""
    if any(row["type"] == bucket_type for row in rows):
        return frozenset()
    return frozenset(node["id"] for row in rows for node in (row.get("outputs") or {}).get("nodeRuns") or ())


def reporting_nodes(run: RunPlan, nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The nodes whose last lines show the result of the run: they run the team's program, or they failed."""
    commanding = {node.name for node in run.nodes if node.launch.get("command")}
    return [node for node in nodes if node["name"] in commanding or node["state"] == "FAILED"]


def own_lines(printed: Sequence[str]) -> list[str]:
    """The lines of the team's own program. All lines if it printed none."""
    shown = [line for line in printed if not is_blank_line(line)]
    return [line for line in shown if not _BESIDE.match(line)] or shown


def lost_lines(printed: Sequence[str]) -> list[str]:
    """The launcher's warnings about files that are lost with the node, or that a real cloud would lose."""
    spoken = [_LAUNCHER.sub("", line) for line in printed if _LAUNCHER.match(line)]
    found: list[str] = []
    for first in (number for number, line in enumerate(spoken) if _LOST.search(line)):
        last = next((number for number in range(first + 1, len(spoken)) if not spoken[number].startswith("  ")), first)
        found += spoken[first : last + 1]
    return found


def attempt_folder(run: RunPlan) -> str:
    """The folder of this attempt in the bucket, where its starts keep their files. Empty if they keep none."""
    launch = run.nodes[0].launch if run.nodes else {}
    return str(launch.get("folder") or "").removeprefix("${bucket}/")


def named_results(listed: Callable[[], Sequence[tuple[str, int]]], read: Callable[[str], bytes]) -> Iterator[str]:
    """Lines about the files that a start has left, with sizes, and its result."""
    try:
        files = listed()
        for name, size in files[:_MOST_NAMED]:
            yield f"{name}, {size} bytes"
            if name.endswith(_RESULT) and size <= _LONGEST_BYTES:
                yield f"  {json.dumps(shorten_value(json.loads(read(name))), allow_nan=False)}"
        if len(files) > _MOST_NAMED:
            yield f"and {len(files) - _MOST_NAMED} more"
    except (ProviderError, OSError, ValueError, RecursionError):
        # This is not an error of `up`: the stack is up.
        yield "(its files could not be read just now)"
