# SPDX-License-Identifier: Apache-2.0
"""Decides whether a planned node did any work, by its traffic with other nodes and its processor time.

If every node runs the command, all payload between nodes comes from the command: a node without payload worked alone.
Service nodes (Dask workers, for example) always have some traffic, to join and for heartbeats. So their run is compared
with an idle run, whose command only waits as long as the real one took.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

# `works`: the node runs the command. `serves`: it runs only services of the framework. `free`: it may stay idle.
Duty = Literal["works", "serves", "free"]

# Measured on a loaded machine of two processors, with three nodes, in nine runs. Dask workers without a task exchanged
# 7 to 13 KB; the larger of the two differed by a tenth from run to run. With a task of one addition it was 15 KB, with
# four each 21 KB, with a small fit 52 KB and more. Processor time says less: 2.0 to 3.4 s idle, mostly Python's start.
# Ray's workers that joined when the script had just ended exchanged 10 to 26 KB, idle ones of such a run 22 KB.
MORE_BYTES, SOME_BYTES = 1.2, 256
MORE_SECONDS, SOME_SECONDS = 1.5, 0.5


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node's load: bytes of payload exchanged with other nodes of its run, the number of those nodes, and the
    processor time of all its processes."""

    bytes: int
    peers: int
    processor_seconds: float | None

    def scaled(self, factor: float) -> NodeLoad:
        seconds = None if self.processor_seconds is None else self.processor_seconds * factor
        return NodeLoad(round(self.bytes * factor), self.peers, seconds)


def read_load(row: Mapping[str, Any], others: Collection[str]) -> NodeLoad:
    """Reads a node's row of the evidence. `others` are the addresses of the other nodes of its run."""
    carried = {peer: int(count) for peer, count in row.get("carried", {}).items() if peer in others and count}
    seconds = row.get("processorSeconds")
    return NodeLoad(sum(carried.values()), len(carried), None if seconds is None else float(seconds))


def largest_load(loads: Iterable[NodeLoad]) -> NodeLoad | None:
    """The largest value of each kind among several nodes. None if there are no nodes."""
    nodes = list(loads)
    if not nodes:
        return None
    seconds = [load.processor_seconds for load in nodes if load.processor_seconds is not None]
    return NodeLoad(
        max(load.bytes for load in nodes), max(load.peers for load in nodes), max(seconds) if seconds else None
    )


def node_duty(launch: Mapping[str, Any], carries: bool) -> Duty:
    """A node's duty, from its launch document. Without ports, or with one node only, no traffic is expected."""
    nodes = sum(role["replicas"] for role in launch["roles"])
    if not carries or nodes < 2 or not launch["ports"]:
        return "free"
    return "works" if launch["command"] else "serves"


def has_carried(duty: Duty, load: NodeLoad | None, idle: NodeLoad | None) -> bool | None:
    """Whether the node did any work. None if nothing was measured, or if there is no idle run to compare with."""
    if duty == "free" or load is None:
        return None
    if not load.bytes:
        return False
    if duty == "works":
        return True
    if idle is None:
        return None
    if load.bytes > idle.bytes * MORE_BYTES + SOME_BYTES:
        return True
    if load.processor_seconds is None or idle.processor_seconds is None:
        return False
    return load.processor_seconds > idle.processor_seconds * MORE_SECONDS + SOME_SECONDS


def explain_idle_node(duty: Duty, load: NodeLoad, idle: NodeLoad | None) -> str:
    """Why a node counts as idle, and the remedy."""
    if idle is not None and load.bytes:
        traffic = (
            f"it exchanged {load.bytes} bytes with other nodes, and up to {idle.bytes} when the command did nothing"
        )
    else:
        traffic = "it exchanged no byte with another node while the command ran"
    if duty == "works":
        return f"{traffic}: let the script join the other nodes by the framework's variables, or plan one node"
    return (
        f"{traffic}: give it work, plan fewer nodes, or let the command wait until it has joined (`awaits_every` or"
        " `awaits_command` in the framework's file)"
    )
