# SPDX-License-Identifier: Apache-2.0
"""What a node is told: the launch document that our launcher reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.frameworks import PortRow
from components.plan.naming import expand
from components.plan.resolved import ResolvedJob
from schemas.model import STALL_MINUTES, EnvValue, Job, PortRange, Run, Secret, Stack

VERSION = 1
# Of a document with waits that images of older releases do not know.
VERSION_WITH_WAITS = 2
# Of a document that names the code, which those do not know either.
VERSION_WITH_CODE = 3


@dataclass(frozen=True, slots=True)
class Part:
    """What is the same for every node of a role in every run of a job: worked out once, however many runs there are."""

    role: str
    called: str
    launch: Mapping[str, Any]
    words: tuple[str, ...]
    runs_command: bool
    peers: str


def part_of(stack: Stack, job: ResolvedJob, role: str, peers: str, names_code: bool) -> Part:
    """The words that start training on a node are the role's own command or the job's. `peers`: how it meets them."""
    words = tuple(shlex.split(job.spec.roles[role].command or job.spec.command))
    return Part(
        role=role,
        called=job.called(role),
        launch={**_launch(stack, job, role), **(_code(job) if names_code else {})},
        words=words,
        runs_command=job.framework.roles[role].runs_command,
        peers=peers,
    )


def document(
    part: Part, names: Mapping[str, str], job: ResolvedJob, run: Run, node: str, rank: int | None
) -> dict[str, Any]:
    """The launch document of one node, as schemas/launch.schema.json says it. Rank None: the cluster tells it."""
    folder, renamed = folder_of(names), _renamed(job)
    words = [expand_braces(word, renamed) for word in (*part.words, *run.args)]
    return {
        **part.launch,
        "job": names["job"],
        "run": names["run"],
        "attempt": run.attempt,
        "node": node,
        "rank": rank,
        "folder": f"{folder}/{run.attempt}",
        "checkpoints": f"{folder}/checkpoints",
        "peers": {"from": part.peers},
        "command": words if part.runs_command else [],
        "secrets": sorted(_secrets(job.spec, run, part.role)),
    }


def _secrets(job: Job, run: Run, role: str) -> set[str]:
    """Names of the variables whose values the launcher must never print."""
    return {
        name
        for environment in (job.env, job.roles[role].env, run.env)
        for name, value in environment.items()
        if isinstance(value, Secret)
    }


def _launch(stack: Stack, job: ResolvedJob, role: str) -> dict[str, Any]:
    values = placeholders(job)
    awaits = list(_awaits(job, role))
    command = [expand_braces(word, values) for word in job.framework.roles[role].awaits_command]
    return {
        "version": VERSION_WITH_WAITS if command or any("every" in row for row in awaits) else VERSION,
        "stack": stack.name,
        "framework": job.framework.name,
        "strategy": job.framework.strategy,
        "role": job.called(role),
        "roles": [_role(job, name) for name in job.framework.roles if name in job.spec.roles],
        "gang": job.framework.gang,
        "processes": int(job.options.get(job.framework.processes or "", 1)),
        "ports": _ports(job, role),
        "start": [expand_braces(word, values) for word in start_words(job, role)],
        "wrap": [expand_braces(word, values) for word in _wrap(job)],
        "awaits": awaits,
        **({"awaitsCommand": command} if command else {}),
        "environment": {name: expand_braces(text, values) for name, text in _told(job).items()},
        "options": job.options,
        "retry": {"count": job.spec.roles[role].retry.count},
        # Only what differs from the launcher's own: the document of a stack that does not name it stays as it is.
        **({} if job.spec.stall_minutes == STALL_MINUTES else {"stallMinutes": job.spec.stall_minutes}),
    }


def _code(job: ResolvedJob) -> dict[str, Any]:
    """The repository of the code, for launchers that know of it."""
    git = job.spec.code.git if job.spec.code else None
    if git is None:
        return {}
    named = {"url": git.url, "branch": git.branch, "commit": git.commit, "secret": git.secret}
    return {"version": VERSION_WITH_CODE, "code": {"git": {key: value for key, value in named.items() if value}}}


def stall_minutes(job: ResolvedJob) -> int:
    """When a run that does nothing is ended; 0 where nobody watches: nodes that go on without the others may wait."""
    elastic = bool(job.options.get("elastic"))
    return job.spec.stall_minutes if job.framework.gang and job.spec.nodes > 1 and not elastic else 0


def _role(job: ResolvedJob, name: str) -> dict[str, Any]:
    """What every node is told of a role: all of them work out by themselves whether the run is complete."""
    spec = job.spec.roles[name]
    return {
        "name": job.called(name),
        "replicas": spec.replicas,
        "service": job.framework.roles[name].service,
        "minFailed": spec.completion.min_failed,
        "minSucceeded": spec.completion.min_succeeded,
    }


def _wrap(job: ResolvedJob) -> tuple[str, ...]:
    options = job.options
    return next((row.words for row in job.framework.wraps if options.get(row.when)), ())


def _awaits(job: ResolvedJob, role: str) -> Iterator[dict[str, Any]]:
    """Ports that must answer: on the first node of the first role that listens, or on every node of each such role."""
    spec = job.framework.roles[role]
    for row, port in _awaited(job, spec.awaits):
        yield {"role": job.called(row.listens[0]), "port": port}
    for row, port in _awaited(job, spec.awaits_every):
        yield from (
            {"role": job.called(name), "port": port, "every": True}
            for name in row.listens
            if name in job.spec.roles and job.spec.roles[name].replicas
        )


def _awaited(job: ResolvedJob, labels: Sequence[str]) -> Iterator[tuple[PortRow, int]]:
    """Nobody listens on a port whose option is off."""
    for row in (row for label in labels for row in job.framework.ports if row.label == label and job.is_active(row)):
        ports = job.ports_of(row)
        yield row, 0 if ports is None else ports.first


def _told(job: ResolvedJob) -> dict[str, str]:
    """The framework's environment, and that of each option that is on."""
    options = job.options
    told = dict(job.framework.environment)
    for name, row in job.framework.options.items():
        if options[name]:
            told.update(row.environment)
    return told


def _ports(job: ResolvedJob, role: str) -> dict[str, Any]:
    """Every port of the job by label: whether this role listens on it, and how the launcher keeps to it."""
    return {
        row.label: {"range": _pair(job.ports_of(row)), "listens": role in row.listens, "pinned": row.pinned}
        for row in job.active_ports()
    }


def _pair(ports: PortRange | None) -> list[int] | None:
    return None if ports is None else [ports.first, ports.last]


def start_words(job: ResolvedJob, role: str) -> list[str]:
    """The words that start the framework's own process for this role, options included."""
    options = job.options
    words = list(job.framework.roles[role].start)
    for extra in job.framework.start_options:
        if extra.role == role:
            words += extra.then if options.get(extra.when) else extra.otherwise
    return words


def placeholders(job: ResolvedJob) -> dict[str, str]:
    """What `{port.label}` and `{option.name}` stand for; addresses and ranks are for the launcher to fill in."""
    values = {f"option.{name}": _plain(value) for name, value in job.options.items()}
    for row in job.framework.ports:
        values |= _port_words(row, job.ports_of(row))
    values["nodes"] = str(job.spec.nodes)
    return {**values, **_renamed(job)}


def _renamed(job: ResolvedJob) -> dict[str, str]:
    """The launcher fills in `{address.<role>}` by the names that nodes are told."""
    return {
        f"{what}.{role}": f"{{{what}.{job.called(role)}}}"
        for role, spec in job.spec.roles.items()
        for what in ("address", "addresses")
        if spec.was.names
    }


def _port_words(row: PortRow, ports: PortRange | None) -> dict[str, str]:
    if ports is None:
        return {f"port.{row.label}": "0", f"port.{row.label}:colon": "0"}
    colon = str(ports.first) if ports.size == 1 else f"{ports.first}:{ports.last}"
    return {f"port.{row.label}": str(ports), f"port.{row.label}:colon": colon}


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def expand_braces(text: str, values: Mapping[str, str]) -> str:
    """Fills in `{name}` for the names known here and leaves the others to the launcher."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def folder_of(names: Mapping[str, str]) -> str:
    """Where everything lies that a run leaves, whatever its attempt."""
    return f"${{bucket}}/{names['job']}/{names['run']}"


def filled(environment: Mapping[str, EnvValue], names: Mapping[str, str]) -> dict[str, EnvValue]:
    """The team's own variables with references filled in; secrets are left alone."""
    return {name: value if isinstance(value, Secret) else expand(value, names) for name, value in environment.items()}
