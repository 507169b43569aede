# SPDX-License-Identifier: Apache-2.0
"""Carries out runs with real processes. A dispatcher gives the runs, and receives reports of their progress."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localcloud import files
from localcloud.files import write_secret
from localcloud.hosts import child_process, evidence, limits, node_setup, specification
from localcloud.hosts.assignment import Assignment, CannotStartError, Dispatcher, RunVerdict, judge_run_results
from localcloud.hosts.fabric import NO_NODES, Fabric, NotInForceError, lost_evidence
from localcloud.hosts.limits import ControlGroups, make_cloud_group
from localcloud.hosts.specification import build_specification, output_path, result_path

_CHUNK = 64 * 1024
MAXIMUM_LINE = 64 * 1024
# The specifications contain variables, which may be secrets of the run's user. They are removed when the run ends.
_SPECIFICATIONS = "node-*.json"
log = logging.getLogger("localcloud")


class OutputSink:
    """Takes the output of one node."""

    def __init__(self, file: Path, give: Callable[[Sequence[bytes]], None]) -> None:
        self._file = file
        self._give = give

    async def drain(self, process: Process) -> None:
        """Reads until the last process of the node has closed its output."""
        if process.stdout is None:
            return
        pending = b""
        with self._file.open("ab") as file:
            while chunk := await process.stdout.read(_CHUNK):
                file.write(chunk)
                file.flush()
                *lines, pending = (pending + chunk).split(b"\n")
                if len(pending) > MAXIMUM_LINE:
                    # The last position that does not split a UTF-8 character.
                    cut = next(
                        (end for end in range(MAXIMUM_LINE, MAXIMUM_LINE - 4, -1) if pending[end] & 0xC0 != 0x80),
                        MAXIMUM_LINE,
                    )
                    lines, pending = [*lines, pending[:cut]], pending[cut:]
                self._give(lines)
            self._give([pending] if pending else [])


@dataclass
class _RunInProgress:
    """A run that is being carried out."""

    task: asyncio.Task[None]
    nodes: list[Process] = field(default_factory=list)
    canceled: bool = False
    failed: str = ""  # why it has to fail
    upkeep: asyncio.Task[None] | None = None
    keeps_disks: bool = False


class Hosts:
    """The machines of one local cloud."""

    def __init__(self, folder: Path, fabric: Fabric, dispatcher: Dispatcher) -> None:
        # Resolved, because the files that nodes see are opened without following links.
        self._folder = folder.resolve()
        self._fabric = fabric
        self._dispatcher = dispatcher
        fabric.fail = self._fail
        self._live: dict[str, _RunInProgress] = {}
        self._groups: ControlGroups | None = None
        self._has_groups = True  # until it is known that this account may not make groups

    def submit(self, run: str) -> None:
        """Starts a run."""
        self._live[run] = _RunInProgress(asyncio.get_running_loop().create_task(self._drive(run)))

    def cancel(self, run: str) -> None:
        """Asks a run's processes to end. The run's task reports the final state."""
        live = self._live.get(run)
        if live is None:
            self._finish(run, RunVerdict("CANCELED", ""))
            return
        live.canceled = True
        _terminate_processes(live.nodes)

    def _fail(self, run: str, reason: str) -> None:
        """Makes a run fail. The run's task reports the final state."""
        if live := self._live.get(run):
            live.failed = live.failed or reason
            _terminate_processes(live.nodes)

    def recover(self) -> None:
        """Starts unfinished runs again after a kill of the cloud. Their hosts were lost, so they start from the
        beginning or from their checkpoints."""
        for run, canceled in self._dispatcher.unfinished():
            self.submit(run)
            self._live[run].canceled = canceled

    async def stop(self) -> None:
        """Ends every process. Runs in progress fail."""
        tasks = [live.task for live in self._live.values()]
        for live in self._live.values():
            _terminate_processes(live.nodes)
            if not live.nodes:
                live.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fabric.close()
        if self._groups:
            await asyncio.to_thread(self._groups.remove)

    def network_changed(self) -> None:
        """Applies changed rules and routes to running nodes. Called after a change of a network."""
        self._fabric.refresh()

    async def why_not_enforced(self) -> str:
        """Why security rules are not enforced on this machine; empty if they are."""
        return await self._fabric.why_not()

    async def why_not_isolated(self) -> str:
        """What isolation of runs lacks on this machine; empty if it lacks nothing."""
        return await self._fabric.why_not_isolated()

    async def evidence(self, run_id: str) -> Mapping[str, Any]:
        """The counts of a run's firewalls, up to now or to its end."""
        seen = await self._fabric.evidence(run_id) or evidence.read_evidence(self.folder(run_id))
        return seen or evidence.build_evidence(run_id, NO_NODES, ())

    async def _drive(self, run_id: str) -> None:
        try:
            try:
                result = await self._run(run_id)
            finally:
                if upkeep := self._live[run_id].upkeep:
                    upkeep.cancel()
                # Nodes may remain, for example after a later node could not start.
                nodes = self._live[run_id].nodes
                _terminate_processes(nodes)
                for process in nodes:
                    await process.wait()
                await self._release(run_id)
        except (CannotStartError, NotInForceError) as error:
            result = RunVerdict("FAILED", str(error))
        except asyncio.CancelledError:
            self._live.pop(run_id, None)
            raise
        except Exception as error:
            log.exception("run %s", run_id)
            result = RunVerdict("FAILED", f"The local cloud could not run it: {error}")
        live = self._live.pop(run_id)
        if live.failed:
            result = replace(result, state="FAILED", details=live.failed)
        self._finish(run_id, RunVerdict("CANCELED", "") if live.canceled else result)

    async def _run(self, run_id: str) -> RunVerdict:
        former_end = await self._former_end(run_id)
        if former_end.state != "IN_PROGRESS":
            return former_end
        self.folder(run_id).mkdir(parents=True, exist_ok=True, mode=0o700)
        assignment = await self._dispatcher.assignment(run_id, self.folder(run_id))
        outline = assignment.outline
        self._live[run_id].keeps_disks = assignment.keeps_disks
        self._live[run_id].upkeep = asyncio.ensure_future(assignment.upkeep())
        nodes = node_setup.prepare_nodes(assignment, await self._fabric.place(assignment))
        mounted = await specification.prepare_mounts(assignment)
        live = self._live[run_id]
        if live.canceled or live.failed:
            return RunVerdict("CANCELED", "")
        readers = []
        for node in nodes:
            process = await self._start(assignment, node, len(nodes), mounted, outline.minutes * 60)
            live.nodes.append(process)
            node_setup.write_node_list(assignment.folder, nodes[: node.rank + 1])
            sink = OutputSink(output_path(assignment.folder, node.rank), assignment.lines(node.group, node.rank))
            readers.append(asyncio.create_task(sink.drain(process)))
        self._dispatcher.started(run_id)
        if live.canceled or live.failed:
            _terminate_processes(live.nodes)
        watchers = [
            asyncio.create_task(_await_node_end(process, node, reader, assignment.folder))
            for process, node, reader in zip(live.nodes, nodes, readers, strict=True)
        ]
        results: dict[int, dict[str, Any]] = {}
        failure: RunVerdict | None = None  # the first one, because the nodes that are stopped after it fail too
        for finished in asyncio.as_completed(watchers):
            rank, result = await finished
            results[rank] = result
            so_far = judge_run_results(outline, results)
            if so_far.state == "FAILED" and failure is None:
                failure = so_far
                _terminate_processes(live.nodes)
        return failure or judge_run_results(outline, results)

    async def _release(self, run_id: str) -> None:
        try:
            seen = await self._fabric.release(run_id)
        finally:  # before anything is written, because the disk may be full
            if not self._live[run_id].keeps_disks:
                await asyncio.to_thread(node_setup.remove_disks, self.folder(run_id))
        if seen:
            evidence.write_evidence(
                self.folder(run_id), evidence.add_processor_time(seen, self._processor(run_id, seen))
            )

    async def _start(
        self, assignment: Assignment, node: node_setup.NodeSetup, count: int, mounted: Sequence[specification.Mount],
        seconds: float,
    ) -> Process:  # fmt: skip
        spec = build_specification(assignment, node, count, mounted, seconds, self._grouped())
        path = assignment.folder / f"node-{node.rank}.json"
        write_secret(path, json.dumps(spec).encode())
        process = await asyncio.create_subprocess_exec(
            *child_process.module_command("localcloud.hosts.supervisor", str(path)), stdin=DEVNULL, stdout=PIPE,
            stderr=STDOUT, env=child_process.interpreter_variables(),
            pass_fds=(node.place.entry.user, node.place.entry.network) if node.place.entry else (),
        )  # fmt: skip
        identity = {"pid": process.pid, "started": files.process_start_time(process.pid)}
        (assignment.folder / f"node-{node.rank}.pid").write_text(json.dumps(identity))
        return process

    def _grouped(self) -> ControlGroups | None:
        """The control groups of this cloud. They are made for its first node."""
        if self._groups is None and self._has_groups:
            self._groups = make_cloud_group(limits.machine_limits())
            self._has_groups = self._groups is not None
        return self._groups

    def _processor(self, run_id: str, seen: Mapping[str, Any]) -> dict[int, float | None]:
        """The processor time of nodes that have written a result, by rank."""
        paths = {node["rank"]: result_path(self.folder(run_id), node["rank"]) for node in seen["nodes"]}
        return {
            rank: json.loads(path.read_text()).get("processorSeconds") for rank, path in paths.items() if path.exists()
        }

    def folder(self, run_id: str) -> Path:
        return self._folder / run_id

    async def _former_end(self, run_id: str) -> RunVerdict:
        """How a run ended whose cloud was killed before that was recorded. If it had not ended, removes its folder."""
        folder, outline = self.folder(run_id), self._dispatcher.outline(run_id)
        results = await node_setup.end_processes(folder)
        if outline is None:
            return RunVerdict("IN_PROGRESS", "")
        ended = judge_run_results(outline, results)
        if ended.state != "IN_PROGRESS":
            evidence.write_evidence(folder, lost_evidence(run_id))
            return ended
        # Nodes that start again are new machines with empty disks.
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._dispatcher.begins_again(run_id)
        return ended

    def _finish(self, run_id: str, result: RunVerdict) -> None:
        self._dispatcher.ended(run_id, result, self.folder(run_id))
        for path in self.folder(run_id).glob(_SPECIFICATIONS):
            path.unlink(missing_ok=True)


async def _await_node_end(
    process: Process, node: node_setup.NodeSetup, reader: asyncio.Task[None], folder: Path
) -> tuple[int, dict[str, Any]]:
    await reader
    await process.wait()
    path = result_path(folder, node.rank)
    lost = {"reason": "lost", "code": None, "detail": f"supervisor ended with {process.returncode}"}
    return node.rank, json.loads(path.read_text()) if path.exists() else lost


def _terminate_processes(nodes: list[Process]) -> None:
    for process in nodes:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
