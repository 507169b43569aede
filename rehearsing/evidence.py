# SPDX-License-Identifier: Apache-2.0
"""What a rehearsal left: read from the cloud's doors and from its API, as values for `rehearsal`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from catalog.tables import table
from iam.compartments import Compartments
from localcloud import admin
from localcloud.control import Cloud, CloudError
from localstacks.oci.sessions import DEPLOYER, USER, session_of
from localstacks.place import Place
from provider.base.asking import Tell, call_of
from provider.base.errors import ProviderError
from provider.oci import logs
from provider.oci.calls import found
from provider.oci.job_runs import start_of
from rehearsal.calls import Called, Granting, Grounds, called, canonical
from rehearsal.carrying import Duty, Load, duty_of, load_of
from rehearsal.model import Artifact, RankSeen, RunSeen
from rehearsal.traffic import Node, Traffic, traffic
from rehearsing.people import People
from rehearsing.runs import Started
from runstatus import seen as runs_seen
from runstatus.dropped import nodes_of

_LAST_LINES = 12
_OUTPUT = "output/"


def _loads(
    nodes: tuple[Node, ...], seen: runs_seen.RunSeen, documents: Mapping[str, Mapping[str, Any]]
) -> dict[int, Load]:
    """By rank, where firewalls were in force: nothing else counts what a node exchanges."""
    loads = {}
    for node, of in zip(nodes, seen.nodes, strict=True):
        document = documents[of.run.id]
        row = next((row for row in document["nodes"] if node.address and row["address"] == node.address), None)
        if row is not None and document["enforced"]:
            loads[node.rank] = load_of(row, {other.address for other in nodes if other is not node})
    return loads


def _duty(started: Started, node: Node) -> Duty:
    launch = next(one.launch for one in started.run.nodes if one.role == node.role)
    return duty_of(launch, next(role.carries for role in started.job.roles if role.called == node.role))


class Evidence:
    """Gathered run by run, told as a whole."""

    def __init__(self, cloud: Cloud, who: People, bucket: str, tell: Tell) -> None:
        self._tell = tell
        self._cloud, self._who, self._bucket = cloud, who, bucket
        self._documents: list[tuple[Mapping[str, Any], tuple[Node, ...]]] = []
        self._names: dict[str, str] = {self._user(): who.words}

    def _user(self) -> str:
        return str(session_of(self._cloud, USER).credentials["user"])

    def of_run(self, started: Started, seen: runs_seen.RunSeen | None, why: str, code: str, where: str) -> RunSeen:
        """A run at its end, with what its nodes' firewalls saw kept for the whole."""
        job, run = started.job, started.run
        if seen is None:
            return RunSeen(
                job.name, run.name, job.framework, code, where, failed=started.refused or "it never appeared"
            )
        documents = dict(self._ask({node.run.id for node in seen.nodes}))
        nodes = nodes_of(seen, documents)
        for ocid, document in documents.items():
            own = tuple(node for node, of in zip(nodes, seen.nodes, strict=True) if of.run.id == ocid)
            self._documents.append((document, own))
            self._names[ocid] = own[0].title if len(own) == 1 else f"{job.name}/{run.name}"
        loads = _loads(nodes, seen, documents)
        ranks = tuple(
            RankSeen(
                node, of.run.state, "; ".join(filter(None, (of.run.details, why))), of.told,
                _duty(started, node), loads.get(node.rank),
            )
            for node, of in zip(nodes, seen.nodes, strict=True)
        )  # fmt: skip
        return RunSeen(
            job.name, run.name, job.framework, code, where, ranks, tuple(self._artifacts(started)),
            failed=started.refused, last_lines=tuple(self._last_lines(seen)),
        )  # fmt: skip

    def loads(self, seen: runs_seen.RunSeen) -> dict[int, Load]:
        """What each rank of a run carried that is none of the rehearsed ones: nothing else of it is kept."""
        documents = dict(self._ask({node.run.id for node in seen.nodes}))
        return _loads(nodes_of(seen, documents), seen, documents)

    def _ask(self, runs: Iterable[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for run in runs:
            try:
                yield run, admin.evidence(self._cloud, run)
            except CloudError as missing:
                none: dict[str, Any] = {"nodes": [], "rules": [], "flows": [], "dropped": []}
                yield run, {"enforced": False, "reason": str(missing), **none}

    def _artifacts(self, started: Started) -> Iterator[Artifact]:
        """What lies in the run's output folder in the bucket, as its people see it."""
        folder = str(started.run.nodes[0].launch.get("folder") or "").partition("/")[2]
        if not folder or not started.nodes:
            return
        prefix = f"{folder}/{start_of(started.nodes[0].id, {})}"
        storage, bucket = self._who.session.client("object_storage"), self._bucket
        try:
            listed = storage.list_objects(self._cloud.namespace, bucket, prefix=f"{prefix}/{_OUTPUT}", fields="size")
        except Exception as error:
            if getattr(error, "status", None) is None:
                raise
            return
        for one in listed.data.objects:
            yield Artifact(one.name.removeprefix(f"{prefix}/{_OUTPUT}"), int(one.size or 0))

    def _last_lines(self, seen: runs_seen.RunSeen) -> Iterator[str]:
        """As the run's people read them; those of ranks that succeeded have nothing to tell."""
        science, call = self._who.session.client("data_science"), call_of("rehearse", self._tell)
        for node in seen.nodes:
            try:
                run = found(call, "Read the job run", partial(science.get_job_run, node.run.id))
                lines = logs.last_lines(self._who.session, call, run, _LAST_LINES, looks=1) if run else []
                if run and logs.place_of(run) is None:
                    lines = ["(the stack keeps no logs; with --keep, what it printed is in the cloud's folder)"]
            except ProviderError as refused:
                lines = [refused.cause]
            if node.run.state != "SUCCEEDED":
                yield from (f"[{node.rank} {node.run.name}] {line}" for line in lines)

    def traffic(self) -> Traffic:
        return traffic(self._documents)

    def dropped_now(self, runs: Iterable[str]) -> list[Mapping[str, Any]]:
        """Live: what has been dropped so far."""
        return [row for _, document in self._ask(runs) for row in document["dropped"]]

    def calls(self) -> tuple[Called, ...]:
        return tuple(called(row, self._names) for row in admin.list_calls(self._cloud))

    def last_call(self) -> int:
        return max((int(row["id"]) for row in admin.list_calls(self._cloud)), default=0)

    def grounds(self) -> Grounds:
        """The policies in force, read as the deployer."""
        identity, cloud = session_of(self._cloud, DEPLOYER).client("identity"), self._cloud
        below = identity.list_compartments(cloud.tenancy).data
        places = (cloud.tenancy, cloud.compartment)
        in_force = [policy for place in places for policy in identity.list_policies(place).data]
        policies = tuple(
            Granting(policy.name, policy.compartment_id, tuple(map(canonical, policy.statements)))
            for policy in in_force
        )
        parents = {one.id: one.compartment_id for one in below}
        compartments = Compartments(cloud.tenancy, parents, {one.id: one.name for one in below})
        return Grounds(policies, compartments, table("regions")["keys"][cloud.region])


def secrets_of(place: Place) -> dict[str, str]:
    """OCIDs of the stack's vault secrets, by the names that `${secret.…}` uses."""
    rows = json.loads(place.state("export", "--stack", place.stack))["deployment"].get("resources") or ()
    return {
        row["urn"].rpartition("::secret-")[2]: row["id"] for row in rows if row["type"] == "oci:Vault/secret:Secret"
    }
