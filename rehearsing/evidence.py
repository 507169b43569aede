# SPDX-License-Identifier: Apache-2.0
"""Reads what a rehearsal left, from the local cloud and its API, as values for `rehearsal`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from localcloud import admin
from localcloud.control import Cloud, CloudError
from provider.base.asking import Tell
from rehearsal.calls import AccessFacts, RecordedCall, read_call
from rehearsal.carrying import Duty, NodeLoad, node_duty, read_load
from rehearsal.model import RankSeen, RunSeen
from rehearsal.traffic import RehearsedNode, Traffic, read_traffic
from rehearsing.people import People
from rehearsing.platform import RehearsalPlatform
from rehearsing.runs import StartedRun
from runstatus import seen as runs_seen
from runstatus.dropped import nodes_of


def _loads(
    nodes: tuple[RehearsedNode, ...], seen: runs_seen.RunStatus, documents: Mapping[str, Mapping[str, Any]]
) -> dict[int, NodeLoad]:
    """The load by rank. Only enforced firewalls count traffic, so ranks without them are left out."""
    loads = {}
    for node, of in zip(nodes, seen.nodes, strict=True):
        document = documents[of.run.id]
        row = next((row for row in document["nodes"] if node.address and row["address"] == node.address), None)
        if row is not None and document["enforced"]:
            loads[node.rank] = read_load(row, {other.address for other in nodes if other is not node})
    return loads


def _duty(started: StartedRun, node: RehearsedNode) -> Duty:
    launch = next(one.launch for one in started.run.nodes if one.role == node.role)
    return node_duty(launch, next(role.carries for role in started.job.roles if role.called == node.role))


class Evidence:
    """Collects evidence run by run, and returns it for the whole rehearsal."""

    def __init__(
        self, platform: RehearsalPlatform, cloud: Cloud, who: People, outputs: Mapping[str, Any], tell: Tell
    ) -> None:
        self._platform, self._cloud, self._who, self._outputs = platform, cloud, who, outputs
        self._tell = tell
        self._documents: list[tuple[Mapping[str, Any], tuple[RehearsedNode, ...]]] = []
        self._names: dict[str, str] = {platform.caller(cloud): who.words}

    def of_run(self, started: StartedRun, seen: runs_seen.RunStatus | None, why: str, code: str, where: str) -> RunSeen:
        """A run at its end, with what its nodes' firewalls saw kept for the whole."""
        job, run = started.job, started.run
        if seen is None:
            return RunSeen(
                job.name, run.name, job.framework, code, where, failed=started.refused or "it never appeared"
            )
        documents = dict(self._ask({node.run.id for node in seen.nodes}))
        nodes = nodes_of(seen, documents)
        for identifier, document in documents.items():
            own = tuple(node for node, of in zip(nodes, seen.nodes, strict=True) if of.run.id == identifier)
            self._documents.append((document, own))
            self._names[identifier] = own[0].title if len(own) == 1 else f"{job.name}/{run.name}"
        loads = _loads(nodes, seen, documents)
        ranks = tuple(
            RankSeen(
                node, of.run.state, "; ".join(filter(None, (of.run.details, why))), of.launcher_status,
                _duty(started, node), loads.get(node.rank),
            )
            for node, of in zip(nodes, seen.nodes, strict=True)
        )  # fmt: skip
        artifacts = tuple(self._platform.artifacts(self._cloud, self._who, self._outputs, started))
        last = tuple(self._platform.last_lines(self._who, seen, self._tell))
        return RunSeen(
            job.name, run.name, job.framework, code, where, ranks, artifacts, failed=started.refused, last_lines=last,
        )  # fmt: skip

    def loads(self, seen: runs_seen.RunStatus) -> dict[int, NodeLoad]:
        """What each rank of a run carried that is none of the rehearsed ones: nothing else of it is kept."""
        documents = dict(self._ask({node.run.id for node in seen.nodes}))
        return _loads(nodes_of(seen, documents), seen, documents)

    def _ask(self, runs: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for run in runs:
            try:
                yield run, admin.read_evidence(self._cloud, run)
            except CloudError as missing:
                none: dict[str, Any] = {"nodes": [], "rules": [], "flows": [], "dropped": []}
                yield run, {"enforced": False, "reason": str(missing), **none}

    def read_traffic(self) -> Traffic:
        return read_traffic(self._documents)

    def dropped_now(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """What has been dropped so far, while the run goes on."""
        return [row for _, document in self._ask(runs) for row in document["dropped"]]

    def calls(self) -> tuple[RecordedCall, ...]:
        return tuple(read_call(row, self._names) for row in admin.list_calls(self._cloud))

    def last_call(self) -> int:
        return max((int(row["id"]) for row in admin.list_calls(self._cloud)), default=0)

    def access_facts(self) -> AccessFacts:
        return self._platform.access_facts(self._cloud)
