# SPDX-License-Identifier: Apache-2.0
"""Counts the tasks of a call of srun as Slurm 22.05 does: on which nodes they are, and which numbers they have."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from launcher.speaks.slurm.options import parse_options
from launcher.speaks.slurm.words import SlurmError, compress_counts, expand_hosts, slurm_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def spread_tasks(tasks: int, room: Sequence[int]) -> list[int]:
    """How many tasks each node gets, by block: one each, and the first nodes as many more as they have room for."""
    counts = [1 if index < tasks else 0 for index in range(len(room))]
    left = tasks - sum(counts)
    for index, most in enumerate(room):
        more = min(left, max(0, most - counts[index]))
        counts[index] += more
        left -= more
    counts[0] += left
    return counts


class Step:
    """The tasks of one call of srun: the nodes, how many tasks each of them has, and the numbers of these tasks."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], state: Mapping[str, Any]) -> None:
        self.options, self.command = parse_options(words)
        everyone, layout = state["addresses"], state["layout"]
        self._cpus = dict(zip(everyone, state["cpus"]))
        asked = self.options.get("ntasks") or environment.get("SLURM_NTASKS") or environment.get("SLURM_NPROCS")
        per_node = self.options.get("ntasks-per-node") or environment.get("SLURM_NTASKS_PER_NODE")
        # `-N 1-4`: as many as there are.
        nodes = self.options.get("nodes", "").rpartition("-")[2] or environment.get("SLURM_NNODES")
        count = min(slurm_number(nodes, "--nodes") if nodes else len(everyone), len(everyone))
        tasks = slurm_number(asked, "--ntasks") if asked else 0
        count = min(count, tasks) if tasks else count
        each = slurm_number(per_node, "--ntasks-per-node") if per_node else 0
        tasks = tasks or count * (each or 1)
        # Slurm ignores it where it leaves no room for all tasks.
        each = 0 if tasks > count * each else each
        self.nodes = self._choose_nodes(everyone, count)
        if not self.nodes or tasks < len(self.nodes):
            raise SlurmError("Unable to create step: More processors requested than permitted")
        kind = (self.options.get("distribution") or environment.get("SLURM_DISTRIBUTION", "")).partition(":")[0]
        self.distribution = kind if kind in ("block", "cyclic") else "cyclic" if tasks <= len(self.nodes) else "block"
        self.tasks, self.own_per_node = tasks, self.options.get("ntasks-per-node", "") if each else ""
        room = [each or layout[everyone.index(name)] for name in self.nodes]
        self.counts, self.ranks = self._number_tasks(room)

    def _choose_nodes(self, everyone: Sequence[str], count: int) -> list[str]:
        """Those that are named, then others in order."""
        named = expand_hosts(self.options.get("nodelist", ""))
        unknown = [name for name in named if name not in everyone]
        if unknown:
            raise SlurmError("Requested node configuration is not available: {}".format(", ".join(unknown)))
        out = {*expand_hosts(self.options.get("exclude", "")), *named}
        first = slurm_number(self.options.get("relative", "0"), "--relative")
        rest = [name for name in [*everyone[first:], *everyone[:first]] if name not in out]
        chosen = [*named, *rest][: max(count, len(named))]
        return [name for name in everyone if name in chosen]

    def _number_tasks(self, room: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """How many tasks each node has, and their numbers: by block, or to the nodes in turn."""
        if self.distribution == "cyclic":
            nodes = len(self.nodes)
            ranks = [list(range(index, self.tasks, nodes)) for index in range(nodes)]
            return [len(numbers) for numbers in ranks], ranks
        counts, ranks, number = spread_tasks(self.tasks, room), [], 0
        for count in counts:
            ranks.append(list(range(number, number + count)))
            number += count
        return counts, ranks

    def variables(self, node: str, step_id: int, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables that all its tasks on a node share."""
        index, counts = self.nodes.index(node), compress_counts(self.counts)
        mask = os.umask(0)
        os.umask(mask)
        found = {
            "SLURMD_NODENAME": node,
            "SLURM_CPUS_ON_NODE": str(self._cpus[node]),
            "SLURM_DISTRIBUTION": self.distribution,
            "SLURM_GTIDS": ",".join(map(str, self.ranks[index])),
            "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0": environment.get("SLURM_JOB_CPUS_PER_NODE", "1"),
            "SLURM_LAUNCH_NODE_IPADDR": node,
            "SLURM_NNODES": str(len(self.nodes)),
            "SLURM_NODEID": str(index),
            "SLURM_NPROCS": str(self.tasks),
            "SLURM_NTASKS": str(self.tasks),
            "SLURM_SRUN_COMM_HOST": node,
            "SLURM_SRUN_COMM_PORT": "0",
            "SLURM_STEPID": str(step_id),
            "SLURM_STEP_ID": str(step_id),
            "SLURM_STEP_LAUNCHER_PORT": "0",
            "SLURM_STEP_NODELIST": ",".join(self.nodes),
            "SLURM_STEP_NUM_NODES": str(len(self.nodes)),
            "SLURM_STEP_NUM_TASKS": str(self.tasks),
            "SLURM_STEP_TASKS_PER_NODE": counts,
            "SLURM_TASKS_PER_NODE": counts,
            "SLURM_TOPOLOGY_ADDR": node,
            "SLURM_UMASK": f"{mask:04o}",
        }
        if "SLURM_JOB_GPUS" in environment:
            found["SLURM_STEP_GPUS"] = environment["SLURM_JOB_GPUS"]
        for option, name in (("ntasks-per-node", "SLURM_NTASKS_PER_NODE"), ("cpus-per-task", "SLURM_CPUS_PER_TASK")):
            value = self.own_per_node if option == "ntasks-per-node" else self.options.get(option, "")
            if value:
                found[name] = value
        return found

    def task_variables(self, node: str, environment: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
        """Each task of a node with its own variables."""
        asked = self.options.get("gpus-per-task") or environment.get("SLURM_GPUS_PER_TASK", "")
        gpus = slurm_number(asked.rpartition(":")[2], "--gpus-per-task") if asked else 0
        tasks = []
        for local, rank in enumerate(self.ranks[self.nodes.index(node)]):
            own = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(local)}
            if gpus:
                own["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(local * gpus, (local + 1) * gpus)))
            tasks.append((rank, own))
        return tasks

    def exported(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What `--export` leaves of the environment."""
        text = self.options.get("export", environment.get("SLURM_EXPORT_ENV", "")) or "ALL"
        parts = text.split(",")
        given = dict(part.split("=", 1) for part in parts if "=" in part)
        if "ALL" in parts:
            return {**environment, **given}
        own = ("SLURM", "TRAINYARD_", "PATH", "HOME", "USER", "LD_LIBRARY_PATH")
        kept = {name: value for name, value in environment.items() if name in parts or name.startswith(own)}
        return {**kept, **given}


def numbered_step(folder: str) -> int:
    """The number of the next step. Steps of one script have the same numbers on all nodes."""
    number = 0
    while True:
        try:
            # A folder: files that appear during training would be reported as lost.
            os.mkdir(f"{folder}/step-{number}")
            return number
        except FileExistsError:
            number += 1


def due_signal(text: str, end: float, of_batch: bool) -> tuple[int, float]:
    """The signal that `--signal=[B:]NAME[@SECONDS]` sends before the end, and when; 0 if others get it."""
    match = re.fullmatch(r"([BR]*:)?([A-Za-z0-9]+)(?:@(\d+))?", text)
    if not match or not end or ("B" in (match[1] or "")) != of_batch:
        return 0, 0
    import signal

    name = match[2].upper()
    number = int(name) if name.isdigit() else getattr(signal, name if name.startswith("SIG") else "SIG" + name, 0)
    return int(number), end - int(match[3] or 60)
