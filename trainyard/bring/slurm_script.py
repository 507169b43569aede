# SPDX-License-Identifier: Apache-2.0
"""What a batch script does, as far as its text says it: the ports at which its processes meet, its image, and calls of
programs that nodes do not have. The script is read, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from trainyard.bring.notes import ELSEWHERE, OTHERWISE, NoteTaker

_PORT_VARIABLE = re.compile(r"(?:^|[\s;&])(?:export\s+|declare\s+-x\s+)?(\w*PORT\w*)=(\S.*)", re.IGNORECASE)
_PORT_OPTION = re.compile(r"--(?:master[_-]port|main[_-]process[_-]port)(?:=|\s+)[\"']?(\d{2,5})\b")
_ENDPOINT = re.compile(r"--rdzv[_-]endpoint(?:=|\s+)\S*?:(\d{2,5})\b")
_NUMBER = re.compile(r"[\"']?(?:\$\{\w+:[-=])?(\d{2,5})\}?[\"']?(?=$|[\s;&#)])")
_RANDOM = re.compile(r"RANDOM|shuf|SLURM_(?:JOB_?ID|ARRAY)|\$\(\(|expr |python|free_port|ss -|netstat")
_STATIC = re.compile(r"master[_-]addr|main[_-]process[_-]ip", re.IGNORECASE)
_IMAGE = re.compile(r"--container-image(?:=|\s+)(\"[^\"]+\"|'[^']+'|\S+)")
_ASSIGNMENT = re.compile(
    r"^\s*(?:export\s+)?([A-Za-z_]\w*)=[\"']?(?:\$\{\w+:[-=])?([^\s\"'}$`;]+)\}?[\"']?\s*(?:#.*)?$"
)
_REFERENCE = re.compile(r"\$\{?(\w+)\}?")
_PMI = re.compile(r"\bsrun\b.*--mpi(?:=|\s+)[\"']?(pmi\w*|cray\w*)")
_MULTI = re.compile(r"\bsrun\b.*--(multi-prog|het-group)\b")
_PATH = re.compile(r"(?<![\w$}./~:@-])/[\w.$\{\}-]+(?:/[\w.$\{\}*-]+)+")
_COMMAND = r"(?:^|[;&|(`]|\btrap\s+[\"']|\bthen|\bdo|\belse|\bsrun\b[^|;&]*|\btime|\bexec|\bsudo|\bnohup)\s*"
_CALLS_SRUN = re.compile(r"\bsrun\b")
_SHOWN_PATHS = 6
# torchrun's own, and that of what takes an address and no port.
_RENDEZVOUS, _STATIC_PORT = 29400, 29500


@dataclass(frozen=True, slots=True)
class ScriptLine:
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class ScriptPorts:
    """The port at which processes meet, others that the script names, and the line that needs all ports."""

    rendezvous: int
    others: tuple[int, ...]
    needs_all: int


def script_lines(lines: Sequence[str]) -> list[ScriptLine]:
    """The lines without comments, joined where they are continued. Numbers are those of their beginnings."""
    found: list[ScriptLine] = []
    held, first = "", 0
    for number, line in enumerate(lines[1:], 2):
        first = first or number
        if not held and line.lstrip().startswith("#"):
            first = 0
            continue
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        if (held + line).strip():
            found.append(ScriptLine(first, held + line))
        held, first = "", 0
    return [*found, ScriptLine(first, held)] if held.strip() else found


def calls_of(lines: Sequence[ScriptLine], program: str) -> Iterator[ScriptLine]:
    """The lines that call a program, which may have several words."""
    words = r"\s+".join(map(re.escape, program.split()))
    pattern = re.compile(rf"{_COMMAND}(?:\S*/)?{words}(?=$|[\s;&|)])")
    return (line for line in lines if pattern.search(line.text))


def calls_srun(lines: Sequence[ScriptLine]) -> bool:
    return any(_CALLS_SRUN.search(line.text) for line in lines)


def ports_in_script(lines: Sequence[ScriptLine], taker: NoteTaker) -> ScriptPorts:
    """BringError if a port is drawn when the script starts: no rule could open it."""
    ports: list[int] = []
    for line in lines:
        for match in _PORT_VARIABLE.finditer(line.text):
            number = _NUMBER.match(match[2])
            if number:
                ports.append(int(number[1]))
            elif _RANDOM.search(match[2]):
                message = f"the port {match[1]} is computed when the script starts, so no rule of a network can open it"
                remedy = f"write a number, such as {match[1]}={_STATIC_PORT}: no other job is on these nodes"
                raise taker.refuse("TB002", line.number, message, remedy)
        ports += (int(match[1]) for pattern in (_PORT_OPTION, _ENDPOINT) for match in pattern.finditer(line.text))
    usable = [port for port in dict.fromkeys(ports) if 1024 <= port <= 65535]
    others = table("bring/slurm")["other_ports"]["programs"]
    opens = next((line.number for program in others for line in calls_of(lines, program)), 0)
    static = any(_STATIC.search(line.text) for line in lines)
    first = usable[0] if usable else _STATIC_PORT if static else _RENDEZVOUS
    return ScriptPorts(first, tuple(usable[1:]), opens)


def read_image(lines: Sequence[ScriptLine]) -> tuple[str, int]:
    """The image of a container that srun is told to start, and the line; empty if there is none or it is computed."""
    values: dict[str, str] = {}
    for line in lines:
        if match := _ASSIGNMENT.match(line.text):
            values.setdefault(match[1], match[2])
        if match := _IMAGE.search(line.text):
            text = match[1].strip("\"'")
            for _ in range(3):
                text = _REFERENCE.sub(lambda found: values.get(found[1], found[0]), text)
            return text, line.number
    return "", 0


def note_calls(lines: Sequence[ScriptLine], nodes: int, taker: NoteTaker) -> None:
    """Notes calls of programs that do something else on a node, or nothing. BringError for what srun cannot do."""
    for line in lines:
        if match := _PMI.search(line.text):
            message = f"`srun --mpi={match[1]}` starts processes of MPI, which meet by PMI: nodes have no PMI"
            raise taker.refuse("TB002", line.number, message, "start them with torchrun, or by the framework horovod")
        if match := _MULTI.search(line.text):
            message = f"`srun --{match[1]}` starts other programs for some tasks, which `srun` cannot do here"
            raise taker.refuse("TB002", line.number, message, "start one program, which looks at SLURM_PROCID")
    rows: list[Mapping[str, Any]] = table("bring/slurm")["calls"]
    for row in rows:
        if nodes < row.get("nodes", 1):
            continue
        kept = re.compile(row["unless"]) if "unless" in row else None
        found = [line.number for line in calls_of(lines, row["program"]) if not (kept and kept.search(line.text))]
        if found:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            taker.note(OTHERWISE, found[0], f"it calls `{row['program']}`{more}: {row['note']}", row["do"])
    if nodes > 1 and not calls_srun(lines):
        message = f"it never calls `srun`: Slurm runs it on the first of its {nodes} nodes, and here it runs on each"
        taker.note(OTHERWISE, 0, message, "start what all nodes do with `srun`, or ask for one node")


def downloads_in(lines: Sequence[ScriptLine]) -> int:
    """The first line that fetches something from the internet; 0 if there is none."""
    programs = table("bring/slurm")["downloads"]["programs"]
    return min((line.number for program in programs for line in calls_of(lines, program)), default=0)


def note_paths(lines: Sequence[ScriptLine], taker: NoteTaker) -> None:
    """Lists absolute paths that are in no folder of every system: of shared file systems, and of homes."""
    row = table("bring/slurm")["paths"]
    found: dict[str, int] = {}
    for line in lines:
        for match in _PATH.finditer(line.text):
            top = match[0].split("/")[1]
            if top not in row["of_systems"]:
                found.setdefault(match[0], line.number)
        for name in row["variables"]:
            if re.search(rf"\$\{{?{name}\b", line.text):
                found.setdefault(f"${name}", line.number)
    if found:
        shown = ", ".join(f"{path} (line {number})" for path, number in list(found.items())[:_SHOWN_PATHS])
        more = f" and {len(found) - _SHOWN_PATHS} more" if len(found) > _SHOWN_PATHS else ""
        remedy = "copy what it reads with `trainyard data put`, name it under `inputs`, and write to $TRAINYARD_OUTPUT"
        taker.note(ELSEWHERE, next(iter(found.values())), f"nodes do not have {shown}{more}", remedy)
