# SPDX-License-Identifier: Apache-2.0
"""Collects the evidence about a run. Its status has most of it; the last lines of its nodes are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.frameworks import framework_names
from components.platform.calls import ProviderError
from components.platform.causes import find_cause
from components.platform.status import NodeStatus, RunStatus
from trainyard.runs.run_looks import Look
from trainyard.why.model import RunEvidence
from trainyard.why.symptoms import Symptom, SymptomsError, bound_lines, known_symptoms, read_team_symptoms

# A team's own rows, beside its stack files.
TEAM_FILE = "symptoms.toml"
# Lines that are read of a node, and nodes that are read.
_LINES, _MOST_NODES = 200, 64
_LARGEST_FILE = 1 << 20
# What a launcher puts before a line: its rank, and the process or `launcher`.
_LABEL = re.compile(r"(?:\[[a-zA-Z]\S{1,100}\] )?\[(\d{1,6})((?:\.\w{1,40})*)\+?\] ?(.*)", re.DOTALL)
# What a machine's own program puts before its lines. Those of a run have a rank in front.
_OF_MACHINE = "[machine] "
# What PyTorch puts before the lines of a traceback.
_LABEL_OF_LIBRARY = re.compile(r"^\[rank\d{1,6}\]: ?")
_NOT_OF_PROGRAM = re.compile(r"\.(?:launcher|rendezvous)$")


@dataclass(frozen=True)
class Collected:
    """`notes`: what could not be read, and why."""

    evidence: RunEvidence
    symptoms: tuple[Symptom, ...]
    notes: tuple[str, ...]


def collect_evidence(look: Look, run: RunStatus, framework: str, folder: Path | None, request: str = "") -> Collected:
    """`framework`: as the stack calls it. `folder`: that of the stack file. `request`: a request for stacks."""
    notes: list[str] = []
    output: dict[int, list[str]] = {}
    launcher: dict[int, list[str]] = {}

    # Nodes of a group share one job run, and one log.
    chosen = {node.run.id: node for node in reversed(nodes_to_read(run))}
    shared = len({node.run.id for node in run.nodes}) < len(run.nodes)
    printed = look.runs.last_lines_of_nodes(look.call, list(chosen.values()), _LINES)
    for node, lines in zip(chosen.values(), printed, strict=True):
        if isinstance(lines, ProviderError):
            notes.append(f"what {node.run.name} printed cannot be read: {lines.cause}")
            continue
        sort_lines_by_rank(lines, None if shared else node.rank, output, launcher)
    evidence = RunEvidence(
        run,
        {rank: tuple(bound_lines(lines)) for rank, lines in output.items()},
        {rank: tuple(bound_lines(lines)) for rank, lines in launcher.items()},
        request,
        framework if framework in framework_names() else "",
    )
    return Collected(evidence, (*team_symptoms_in(folder, notes), *known_symptoms()), tuple(notes))


def nodes_to_read(run: RunStatus) -> list[NodeStatus]:
    """Nodes that may have printed, those that failed first."""
    cause = find_cause(run)
    first = cause.rank if cause is not None else None
    nodes = [node for node in run.nodes if node.log is not None]
    return sorted(nodes, key=lambda node: (node.rank != first, node.run.finished_at or "9999", node.rank))[:_MOST_NODES]


def sort_lines_by_rank(
    lines: Sequence[str], rank: int | None, output: dict[int, list[str]], launcher: dict[int, list[str]]
) -> None:
    """Gives lines to ranks without what the launcher puts before them. `rank`: whose log it is; None if several ranks
    share it. A line never counts for a rank whose log it is not in."""
    for line in lines:
        if rank is not None and line.startswith(_OF_MACHINE):
            launcher.setdefault(rank, []).append(line[len(_OF_MACHINE) :])
            continue
        label = _LABEL.fullmatch(line)
        own = rank if rank is not None else int(label[1]) if label else None
        if own is None:
            continue
        if label is None or int(label[1]) != own:
            output.setdefault(own, []).append(line)
        else:
            kept = launcher if _NOT_OF_PROGRAM.search(label[2]) else output
            kept.setdefault(own, []).append(_LABEL_OF_LIBRARY.sub("", label[3]))


def team_symptoms_in(folder: Path | None, notes: list[str]) -> tuple[Symptom, ...]:
    file = folder / TEAM_FILE if folder is not None else None
    if file is None or not file.is_file():
        return ()
    try:
        with file.open("rb") as opened:
            return read_team_symptoms(opened.read(_LARGEST_FILE).decode(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        notes.append(f"{file} cannot be read: {error}")
    except SymptomsError as error:
        notes.append(str(error))
    return ()
