# SPDX-License-Identifier: Apache-2.0
"""Collects a rehearsal's evidence from the local cloud and its API: traffic, loads and recorded calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from components.platform import status as runs_seen
from components.platform.calls import ProviderError, Tell, call_of
from components.platform.connections import rehearsed_nodes
from components.platform.evidence import AccessFacts, RecordedCall
from components.platform.rehearsal import Artifact, People, RehearsalPlatform, StartedRun
from components.platform.runs import NodeRun, is_blank_line
from components.platform.traffic import RehearsedNode, Traffic, read_traffic
from launcher.losses import count_files, format_size
from localcloud import admin
from localcloud.control import Cloud, CloudError
from provider.runs.lost import LOCAL_ONLY, read_lost
from trainyard.rehearsal.model import RankSeen, RunSeen
from trainyard.rehearsal.node_load import NodeLoad, node_duty, read_load

Document = Mapping[str, Any]
_LAST_LINES = 12
# The folder of the output for files from the working directory (launcher/workplace.py).
_WORKING_DIRECTORY = "workdir/"
_NO_LOG = "(the stack keeps no logs; with --keep, what it printed is in the cloud's folder)"
_RULE, _FLOW = ("list", "direction", "index", "node"), ("direction", "from", "to", "port", "protocol")


def counts_since(document: Document, before: Document | None) -> Document:
    """The counts of a host's evidence document since an earlier document of the same host."""
    if before is None:
        return document
    return {
        **document,
        "nodes": [_node_since(node, before["nodes"]) for node in document["nodes"]],
        "rules": [*_rows_since(document["rules"], before["rules"], _RULE, ("connections", "packets"))],
        "flows": [
            row
            for row in _rows_since(document["flows"], before["flows"], _FLOW, ("connections",))
            if row["connections"]
        ],
        "dropped": [
            row for row in _rows_since(document["dropped"], before["dropped"], _FLOW, ("packets",)) if row["packets"]
        ],
    }


def _rows_since(
    rows: Iterable[Document], before: Iterable[Document], key: Sequence[str], counted: Sequence[str]
) -> Iterator[Document]:
    earlier = {tuple(row[name] for name in key): row for row in before}
    for row in rows:
        old = earlier.get(tuple(row[name] for name in key), {})
        yield {**row, **{name: _count_since(row[name], old.get(name, 0)) for name in counted}}


def _node_since(node: Document, before: Iterable[Document]) -> Document:
    old: Document = next((earlier for earlier in before if earlier["rank"] == node["rank"]), {})
    carried, seconds, until = old.get("carried") or {}, node.get("processorSeconds"), old.get("processorSeconds")
    return {
        **node,
        "carried": {
            peer: _count_since(count, carried.get(peer, 0)) for peer, count in (node.get("carried") or {}).items()
        },
        "processorSeconds": seconds - until if seconds is not None and until is not None else seconds,
    }


def _count_since(now: int, before: int) -> int:
    """The difference of two counts. A host that was restarted counts from zero."""
    return now - before if now >= before else now


def _loads_by_rank(
    nodes: tuple[RehearsedNode, ...], seen: runs_seen.RunStatus, documents: Mapping[str, Mapping[str, Any]]
) -> dict[int, NodeLoad]:
    """The loads by rank. Only enforced firewalls count traffic, so ranks without one are left out."""
    loads = {}
    for node, of in zip(nodes, seen.nodes, strict=True):
        document = documents[of.run.id]
        row = next((row for row in document["nodes"] if node.address and row["address"] == node.address), None)
        if row is not None and document["enforced"]:
            loads[node.rank] = read_load(row, {other.address for other in nodes if other is not node})
    return loads


def _last_lines_of_failed(who: People, seen: runs_seen.RunStatus, tell: Tell) -> Iterator[str]:
    """The last lines of ranks that did not succeed. Those of all ranks are read, so that the users' permission to read
    logs is used in every rehearsal."""
    call = call_of("rehearse", tell)
    for node in seen.nodes:
        try:
            if node.log:
                lines = who.runs.last_lines(call, node.run, _LAST_LINES, patiently=False)
            else:
                lines = [_NO_LOG] if node.run.started_at else []
        except ProviderError as refused:
            lines = [refused.cause]
        if node.run.state != "SUCCEEDED":
            yield from (f"[{node.rank} {node.run.name}] {line}" for line in lines if not is_blank_line(line))


def mark_local_only(artifacts: Iterable[Artifact], seen: runs_seen.RunStatus) -> Iterator[Artifact]:
    """Marks the files that a real cloud would lose. The launcher names the largest ones of each rank."""
    kept = {node.rank: read_lost(node.launcher_status, LOCAL_ONLY) for node in seen.nodes}
    lost = {
        (f"rank-{rank}" if rank else "", file.name)
        for rank, of_rank in kept.items()
        if of_rank
        for file in of_rank.largest
    }
    for artifact in artifacts:
        before, _, name = artifact.name.rpartition(_WORKING_DIRECTORY)
        yield replace(artifact, local_only=(before.rstrip("/"), name) in lost)


def _local_only(title: str, seen: runs_seen.RunStatus) -> Iterator[str]:
    """The files that came back only because the local cloud keeps files of any size."""
    for node in seen.nodes:
        kept = read_lost(node.launcher_status, LOCAL_ONLY)
        if kept is not None:
            largest = ", ".join(f"{file.name} ({format_size(file.size)}: {file.why})" for file in kept.largest)
            files = f"{count_files(kept.files)} came back only from the local cloud"
            yield f"{title} rank {node.rank}: {files}; a real cloud would lose {largest}. {kept.remedy}"


class Evidence:
    """Collects evidence after each run, and returns it for the whole rehearsal."""

    def __init__(
        self, platform: RehearsalPlatform, cloud: Cloud, who: People, outputs: Mapping[str, Any], tell: Tell
    ) -> None:
        self._platform, self._cloud, self._who, self._outputs = platform, cloud, who, outputs
        self._tell = tell
        self._documents: list[tuple[Mapping[str, Any], tuple[RehearsedNode, ...]]] = []
        self._names: dict[str, str] = {platform.caller(cloud, who): who.words}
        # The last document of each host. A host that stays between runs goes on counting: a run is the difference.
        self._before: dict[str, Mapping[str, Any]] = {}

    def of_run(self, started: StartedRun, seen: runs_seen.RunStatus | None, why: str, code: str, where: str) -> RunSeen:
        """The evidence of a run at its end. Keeps the traffic of its nodes for the whole rehearsal."""
        job, run = started.job, started.run
        if seen is None:
            return RunSeen(
                job.name, run.name, job.framework, code, where, failed=started.refused or "it never appeared"
            )
        own_runs = [node.run for node in seen.nodes]
        hosts, documents = self._hosts(job.name, own_runs), self._last(job.name, own_runs)
        nodes = rehearsed_nodes(seen, documents)
        for identifier, document in documents.items():
            own = tuple(node for node, of in zip(nodes, seen.nodes, strict=True) if of.run.id == identifier)
            self._documents.append((document, own))
            self._name(hosts[identifier], own[0].title if len(own) == 1 else f"{job.name}/{run.name}", own[0].machine)
        loads = _loads_by_rank(nodes, seen, documents)
        ranks = []
        for node, of in zip(nodes, seen.nodes, strict=True):
            launch = next(planned.launch for planned in run.nodes if planned.role == node.role)
            duty = node_duty(launch, next(role.carries for role in job.roles if role.called == node.role))
            details = "; ".join(filter(None, (of.run.details, why)))
            ranks.append(RankSeen(node, of.run.state, details, of.launcher_status, duty, loads.get(node.rank)))
        left = self._platform.artifacts(self._cloud, self._who, self._outputs, started)
        artifacts = tuple(mark_local_only(left, seen))
        last = tuple(_last_lines_of_failed(self._who, seen, self._tell))
        return RunSeen(
            job.name, run.name, job.framework, code, where, tuple(ranks), artifacts, failed=started.refused,
            last_lines=last, local_only=tuple(_local_only(f"{job.name}/{run.name}", seen)),
        )  # fmt: skip

    def loads(self, job: str, seen: runs_seen.RunStatus) -> dict[int, NodeLoad]:
        """The load of each rank of a run that is not itself rehearsed, such as an idle run. Nothing of it is kept."""
        documents = self._last(job, [node.run for node in seen.nodes])
        return _loads_by_rank(rehearsed_nodes(seen, documents), seen, documents)

    def begin(self, started: StartedRun) -> None:
        """Called before a run starts: excludes what hosts that stay between runs have counted until now."""
        self._last(started.job.name, started.nodes)

    def _name(self, host: str, title: str, machine: str) -> None:
        """Names a host after its run. A host that had more than one run gets the machine's name."""
        self._names[host] = title if self._names.get(host, title) == title else machine

    def _last(self, job: str, nodes: Iterable[NodeRun]) -> dict[str, Mapping[str, Any]]:
        """The counts of each node since the last call, by the id of its run."""
        hosts = self._hosts(job, nodes)
        now = {host: self._ask(host) for host in hosts.values()}
        documents = {run: counts_since(now[host], self._before.get(host)) for run, host in hosts.items()}
        self._before |= now
        return documents

    def _hosts(self, job: str, nodes: Iterable[NodeRun]) -> Mapping[str, str]:
        return self._platform.hosts(self._outputs, job, nodes)

    def _ask(self, host: str) -> Mapping[str, Any]:
        try:
            document = admin.read_evidence(self._cloud, host)
        except CloudError as missing:
            none: dict[str, Any] = {"nodes": [], "rules": [], "flows": [], "dropped": []}
            return {"enforced": False, "reason": str(missing), **none}
        return {**document, "rules": [{**row, "called": self._peers.get(row["peer"], "")} for row in document["rules"]]}

    @cached_property
    def _peers(self) -> Mapping[str, str]:
        return self._platform.peers(self._cloud, self._outputs)

    def read_traffic(self) -> Traffic:
        return read_traffic(self._documents)

    def dropped_now(self, started: StartedRun) -> list[Mapping[str, Any]]:
        """The packets dropped since the run began. The run may still be running."""
        hosts = set(self._hosts(started.job.name, started.nodes).values())
        return [row for host in hosts for row in counts_since(self._ask(host), self._before.get(host))["dropped"]]

    def calls(self) -> tuple[RecordedCall, ...]:
        rows = self._platform.judged_calls(self._cloud)
        return tuple(self._platform.read_call(row, self._names) for row in rows)

    def last_call(self) -> int:
        return max((int(row["id"]) for row in self._platform.judged_calls(self._cloud)), default=0)

    def refused_since(self, number: int) -> bool:
        """Whether a call after the one with this number was refused."""
        return any(int(row["id"]) > number and not row["allowed"] for row in self._platform.judged_calls(self._cloud))

    def access_facts(self) -> AccessFacts:
        return self._platform.access_facts(self._cloud)
