# SPDX-License-Identifier: Apache-2.0
"""Runs on paper: each node is a process of this machine that draws in a folder of the desk."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from components.platform.calls import Call
from components.platform.client import LineMerger, RunClients, RunReader, Runs
from components.platform.runs import DELETED, NodeRun, NodeSpec, RunSpec, Try, liked_by
from components.platform.status import WantedRuns
from components.platform.tries import PlannedTry, ReadyTry
from components.platform.values import Properties

PREFIX = "paper/"
# The program of a node. It writes its exit code to a file.
_DRAWS = '"$@" >log 2>&1; echo $? >new && mv new code'


class PaperRuns(Runs):
    def __init__(self, desk: str) -> None:
        self.desk = Path(desk)

    @property
    def place(self) -> str:
        return str(self.desk)

    @property
    def where(self) -> str:
        return f"the desk {self.desk}"

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        folder = self._folder(call, spec)
        for node in spec.nodes:
            if not (folder / node.name).exists():
                _start(folder / node.name, node)
            yield NodeRun(node.name, f"{PREFIX}{folder.name}/{node.name}", "ACCEPTED")

    def _folder(self, call: Call, spec: RunSpec) -> Path:
        """The folder of a run that an interrupted attempt began, or a new one."""
        name = hashlib.sha256(spec.fingerprint.encode()).hexdigest()[:12]
        for start in count(1):
            folder = self.desk / f"{name}-{start}"
            if not folder.exists():
                folder.mkdir(parents=True)
                written = {"fingerprint": spec.fingerprint, "attempt": spec.attempt, "nodes": [*map(_said, spec.nodes)]}
                self._label(folder, {**written, "created": datetime.now(UTC).isoformat()}, spec)
                return folder
            if not call.anew and not (folder / "released").exists():
                return folder
        raise AssertionError("numbers do not end")

    def _label(self, folder: Path, written: Mapping[str, Any], spec: RunSpec) -> None:
        names = {"displayName": spec.display_name, "tags": dict(spec.tags)}
        (folder / "run.json").write_text(json.dumps({**written, **names}))

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        return [self._node(node) for node in nodes]

    def _node(self, node: NodeRun) -> NodeRun:
        folder = self.folder_of(node)
        if not folder.is_dir():
            return NodeRun(node.name, node.id, DELETED)
        began, code = _moment(folder / "pid"), folder / "code"
        if (folder / "cancelled").exists():
            return NodeRun(node.name, node.id, "CANCELED", "", began)
        if not code.exists():
            return NodeRun(node.name, node.id, "IN_PROGRESS", "", began)
        ended = code.read_text().strip()
        state, why = ("SUCCEEDED", "") if ended == "0" else ("FAILED", f"ended with code {ended}")
        return NodeRun(node.name, node.id, state, why, began, _moment(code))

    def folder_of(self, node: NodeRun) -> Path:
        return self.desk / node.id.removeprefix(PREFIX)

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for node in nodes:
            if not self._node(node).over:
                (self.folder_of(node) / "cancelled").touch()
                with suppress(ProcessLookupError):
                    os.killpg(int((self.folder_of(node) / "pid").read_text()), signal.SIGTERM)

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for folder in self._folders(nodes):
            (folder / "released").touch()

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        for folder in self._folders(nodes):
            self._label(folder, json.loads((folder / "run.json").read_text()), spec)

    def _folders(self, nodes: Sequence[NodeRun]) -> set[Path]:
        return {folder for node in nodes if (folder := self.folder_of(node).parent).is_dir()}

    def reader(self, wanted: WantedRuns) -> RunReader:
        from components.paper.client.look import Looker

        return Looker(self, wanted)

    def merger(self, call: Call, ranks: frozenset[int]) -> LineMerger:
        from components.paper.client.look import Merger

        return Merger(self, ranks)

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        from components.paper.client.look import prepare

        return prepare(self, planned)

    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        found = (nodes for run, nodes in self.runs() if run["fingerprint"] == spec.fingerprint)
        return [node for nodes in found for node in nodes]

    def last_lines(self, call: Call, node: NodeRun, limit: int, patiently: bool = True) -> list[str]:
        return self.lines(node)[-limit:]

    def lines(self, node: NodeRun) -> list[str]:
        log = self.folder_of(node) / "log"
        return log.read_text().splitlines() if log.exists() else []

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        found = [(*read, liked_by(read[0]["fingerprint"])) for read in self.runs()]
        return [Try(_title(run), like, tuple(nodes)) for run, nodes, like in found if like is not None and alive(nodes)]

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        return {run["fingerprint"]: run["tags"]["run"] for run, nodes in self.runs() if alive(nodes)}

    def runs(self) -> Iterator[tuple[Mapping[str, Any], list[NodeRun]]]:
        """Every run with the states of its nodes, the oldest first."""
        for file in sorted(self.desk.glob("*/run.json"), key=lambda file: file.parent.stat().st_ctime):
            run = json.loads(file.read_text())
            ids = [(node["name"], f"{PREFIX}{file.parent.name}/{node['name']}") for node in run["nodes"]]
            yield run, [self._node(NodeRun(name, node, "")) for name, node in ids]

    def describe(self, call: Call, run_id: str) -> tuple[Properties, list[NodeRun]] | None:
        for run, nodes in self.runs():
            if run_id in {node.id for node in nodes}:
                named = {key: run[key] for key in ("displayName", "tags", "nodes", "attempt")}
                return {"platform": "paper", "desk": str(self.desk), **named}, nodes
        return None


def alive(nodes: Sequence[NodeRun]) -> bool:
    return not all(node.over for node in nodes)


def _title(run: Mapping[str, Any]) -> str:
    return f"{run['tags'].get('job')}/{run['tags'].get('run')}"


def _said(node: NodeSpec) -> dict[str, Any]:
    return {"name": node.name, "role": node.role, "rank": node.rank, "arguments": list(node.arguments)}


def _start(folder: Path, node: NodeSpec) -> None:
    folder.mkdir()
    variables = {**os.environ, **node.environment, "RANK": str(node.rank)}
    process = subprocess.Popen(
        ["sh", "-c", _DRAWS, "sh", *node.arguments], cwd=folder, env=variables, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    (folder / "pid").write_text(str(process.pid))


def _moment(file: Path) -> str | None:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat() if file.exists() else None


RUN_CLIENTS = RunClients(
    knows=lambda run_id: run_id.startswith(PREFIX),
    of_config=lambda config: PaperRuns(str(config["desk"])),
    of_caller=lambda where: PaperRuns(where.place or str(where.config["trainyard:desk"])),
)
