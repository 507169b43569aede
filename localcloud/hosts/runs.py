# SPDX-License-Identifier: Apache-2.0
"""Drives job runs through their states, by real processes."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localcloud import processes
from localcloud.api import clock, tenancy
from localcloud.api.lifecycles import RUN_ACTIVE, RUN_TERMINAL
from localcloud.api.operations import Cloud
from localcloud.api.services.network import vnics
from localcloud.api.store import Resource
from localcloud.hosts import evidence, former, isolated, limits, mounts, output, run_principal, workplace
from localcloud.hosts.assignments import assignment_of, attach
from localcloud.hosts.fabric import NO_NODES, Fabric, NotInForceError, lost
from localcloud.hosts.groups import Groups, begin
from localcloud.hosts.specification import result_path, specification
from localcloud.hosts.verdict import Verdict, verdict

_SECRETS = (f"{workplace.GIVEN}/rpst*", "node-*.json")
BEGUN_AGAIN = "Begun again: the local cloud was killed while the run was in progress, and its hosts with it"
log = logging.getLogger("localcloud")


@dataclass
class _Live:
    """A run that has a task here."""

    task: asyncio.Task[None]
    nodes: list[Process] = field(default_factory=list)
    canceled: bool = False
    failed: str = ""  # why it may not go on
    renewal: asyncio.Task[None] | None = None


class Hosts:
    """The machines of one local cloud."""

    def __init__(self, cloud: Cloud, fabric: Fabric) -> None:
        self._cloud = cloud
        self._fabric = fabric
        fabric.fail = self._fail
        self._live: dict[str, _Live] = {}
        self._groups: Groups | None = None
        self._has_groups = True  # until it turned out that this account may make none

    def submit(self, run: str) -> None:
        """Starts a run that was accepted."""
        self._live[run] = _Live(asyncio.get_running_loop().create_task(self._drive(run)))

    def cancel(self, run: str) -> None:
        """Asks a run's processes to end; its task writes the final state."""
        live = self._live.get(run)
        if live is None:
            self._finish(run, Verdict("CANCELED", ""))
            return
        live.canceled = True
        _terminate(live.nodes)

    def _fail(self, run: str, reason: str) -> None:
        """Ends a run that may not go on; its task writes the final state."""
        if live := self._live.get(run):
            live.failed = live.failed or reason
            _terminate(live.nodes)

    def recover(self) -> None:
        """After a kill: what was to run still is to. Its hosts went with this cloud, as no real one's do, so it begins
        again, from its checkpoints if it writes any."""
        for run in self._cloud.store.live("job-run"):
            if run.state in RUN_ACTIVE:
                self.submit(run.id)
                self._live[run.id].canceled = run.state == "CANCELING"

    async def stop(self) -> None:
        """Ends every process; what was running has failed."""
        tasks = [live.task for live in self._live.values()]
        for live in self._live.values():
            _terminate(live.nodes)
            if not live.nodes:
                live.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fabric.close()
        if self._groups:
            await asyncio.to_thread(self._groups.remove)

    def network_changed(self) -> None:
        """A call has changed something of a network: what it says is in force for living nodes too."""
        self._fabric.refresh()

    async def why_not_enforced(self) -> str:
        """Why security rules are not enforced on this machine; empty where they are."""
        return await self._fabric.why_not()

    async def evidence(self, run_id: str) -> Mapping[str, Any]:
        """What the firewalls of a run saw: so far, or until its end."""
        seen = await self._fabric.evidence(run_id) or evidence.read(self.folder(run_id))
        return seen or evidence.document(run_id, NO_NODES, ())

    async def _drive(self, run_id: str) -> None:
        try:
            try:
                result = await self._run(run_id)
            finally:
                if renewal := self._live[run_id].renewal:
                    renewal.cancel()
                await _ended_all(self._live[run_id].nodes)
                await self._release(run_id)
        except (workplace.CannotStartError, NotInForceError) as error:
            result = Verdict("FAILED", str(error))
        except asyncio.CancelledError:
            self._live.pop(run_id, None)
            raise
        except Exception as error:
            log.exception("run %s", run_id)
            result = Verdict("FAILED", f"The local cloud could not run it: {error}")
        live = self._live.pop(run_id)
        if live.failed:
            result = replace(result, state="FAILED", details=live.failed)
        self._finish(run_id, Verdict("CANCELED", "") if live.canceled else result)

    async def _run(self, run_id: str) -> Verdict:
        former_end = await self._former_end(self._current(run_id))
        if former_end.state != "IN_PROGRESS":
            return former_end
        await self._hand_out_a_token(run_id)
        assignment = await assignment_of(self._cloud, self._current(run_id), self.folder(run_id))
        groups = workplace.groups_of(assignment.run, assignment.job)
        named = _placed(groups)
        attached = attach(self._cloud, assignment.run, len(named))
        nodes = workplace.prepare(assignment, self._cloud.store, await self._fabric.place(run_id, attached, named))
        mounted = await mounts.prepare(assignment, self._cloud.store, self._cloud.objects)
        live = self._live[run_id]
        if live.canceled or live.failed:
            return Verdict("CANCELED", "")
        minutes = workplace.maximum_minutes(assignment.run, assignment.job)
        readers = []
        for node in nodes:
            process = await self._start(assignment, node, len(nodes), mounted, minutes * 60)
            live.nodes.append(process)
            workplace.announce(assignment.folder, nodes[: node.rank + 1])
            sink = output.Sink(self._cloud.store, self._current(run_id), node, assignment)
            readers.append(asyncio.create_task(sink.drain(process)))
        self._change(run_id, "IN_PROGRESS", "", timeStarted=clock.rfc3339(clock.now()))
        if live.canceled or live.failed:
            _terminate(live.nodes)
        watchers = [
            asyncio.create_task(_ended(process, node, reader, assignment.folder))
            for process, node, reader in zip(live.nodes, nodes, readers, strict=True)
        ]
        results: dict[int, dict[str, Any]] = {}
        failure: Verdict | None = None  # the first is the cause; what is stopped after it only follows from it
        for finished in asyncio.as_completed(watchers):
            rank, result = await finished
            results[rank] = result
            so_far = verdict(groups, named, results, minutes)
            if so_far.state == "FAILED" and failure is None:
                failure = so_far
                _terminate(live.nodes)
        return failure or verdict(groups, named, results, minutes)

    async def _hand_out_a_token(self, run_id: str) -> None:
        folder = self.folder(run_id)
        seconds = await run_principal.write(self._cloud, self._current(run_id), folder)
        renewed = run_principal.keep_renewed(self._cloud, run_id, folder, seconds)
        self._live[run_id].renewal = asyncio.create_task(renewed)

    async def _release(self, run_id: str) -> None:
        try:
            seen = await self._fabric.release(run_id)
        finally:  # first of all, for what follows may need the room
            await asyncio.to_thread(workplace.remove, self.folder(run_id))
        if seen:
            evidence.write(self.folder(run_id), evidence.with_processor(seen, self._processor(run_id, seen)))

    async def _start(
        self, assignment: workplace.Assignment, node: workplace.Node, count: int, mounted: Sequence[mounts.Mount],
        seconds: float,
    ) -> Process:  # fmt: skip
        spec = specification(assignment, node, count, mounted, seconds, self._grouped())
        path = assignment.folder / f"node-{node.rank}.json"
        tenancy.write_secret(path, json.dumps(spec).encode())
        process = await asyncio.create_subprocess_exec(
            *isolated.command("localcloud.hosts.supervisor", str(path)), stdin=DEVNULL, stdout=PIPE, stderr=STDOUT,
            env=isolated.environment(),
            pass_fds=(node.place.entry.user, node.place.entry.network) if node.place.entry else (),
        )  # fmt: skip
        identity = {"pid": process.pid, "started": processes.start_time(process.pid)}
        (assignment.folder / f"node-{node.rank}.pid").write_text(json.dumps(identity))
        return process

    def _grouped(self) -> Groups | None:
        """The control groups of this cloud, made when its first node needs them."""
        if self._groups is None and self._has_groups:
            self._groups = begin(limits.of_machine())
            self._has_groups = self._groups is not None
        return self._groups

    def _processor(self, run_id: str, seen: Mapping[str, Any]) -> dict[int, float | None]:
        """By rank, of the nodes that have left a result."""
        paths = {node["rank"]: result_path(self.folder(run_id), node["rank"]) for node in seen["nodes"]}
        return {
            rank: json.loads(path.read_text()).get("processorSeconds") for rank, path in paths.items() if path.exists()
        }

    def folder(self, run_id: str) -> Path:
        return self._cloud.home / "runs" / run_id

    async def _former_end(self, run: Resource) -> Verdict:
        """How a run had ended whose cloud was killed before it could say so. Nothing is left of one that had not."""
        folder = self.folder(run.id)
        results = await former.end(folder)
        job = self._cloud.store.get(run.body["jobId"])
        if job is None:
            return Verdict("IN_PROGRESS", "")
        groups = workplace.groups_of(run, job)
        ended = verdict(groups, _placed(groups), results, workplace.maximum_minutes(run, job))
        if ended.state != "IN_PROGRESS":
            evidence.write(folder, lost(run.id))
            return ended
        await asyncio.to_thread(former.remove, folder)
        if run.state == "IN_PROGRESS":
            with self._cloud.store.transaction():
                again = self._current(run.id)
                self._cloud.store.put(again, body={**again.body, "lifecycleDetails": BEGUN_AGAIN})
        return ended

    def _current(self, run_id: str) -> Resource:
        run = self._cloud.store.get(run_id)
        if run is None:
            raise workplace.CannotStartError("The run is gone")
        return run

    def _finish(self, run_id: str, result: Verdict) -> None:
        more: dict[str, Any] = {"timeFinished": clock.rfc3339(clock.now())}
        if result.groups:
            more["nodeGroupDetailsList"] = [dict(group) for group in result.groups]
        self._change(run_id, result.state, result.details, **more)
        for pattern in _SECRETS:  # the run's token, and environments that may hold its user's secrets
            for path in self.folder(run_id).glob(pattern):
                path.unlink(missing_ok=True)

    def _change(self, run_id: str, state: str, details: str, **more: Any) -> None:
        with self._cloud.store.transaction():
            run = self._cloud.store.get(run_id)
            if run is None or not run.live or (state == "IN_PROGRESS" and run.state != "ACCEPTED"):
                return
            body = {**run.body, "lifecycleDetails": details, **more}
            self._cloud.store.put(run, state=state, body=body)
            if state in RUN_TERMINAL:
                vnics.detach(self._cloud.store, run_id)


def _placed(groups: Sequence[workplace.Group]) -> list[str]:
    """By rank, the group of each node."""
    return [group.name for group in groups for _ in range(group.replicas)]


async def _ended(
    process: Process, node: workplace.Node, reader: asyncio.Task[None], folder: Path
) -> tuple[int, dict[str, Any]]:
    await reader
    await process.wait()
    path = result_path(folder, node.rank)
    lost = {"reason": "lost", "code": None, "detail": f"supervisor ended with {process.returncode}"}
    return node.rank, json.loads(path.read_text()) if path.exists() else lost


async def _ended_all(nodes: list[Process]) -> None:
    """Nodes that still run when their run does not, because the next one could not be started, say."""
    _terminate(nodes)
    for process in nodes:
        await process.wait()


def _terminate(nodes: list[Process]) -> None:
    for process in nodes:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
