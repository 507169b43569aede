# SPDX-License-Identifier: Apache-2.0
"""What a node is told: the launch document for our launcher, and the environment ADS-built images read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.frameworks import Framework, PortRow
from components.plan.naming import expand
from components.plan.ports import active, chosen, options_of
from schemas.model import STALL_MINUTES, EnvValue, Job, PortRange, Run, Secret, Stack

VERSION = 1
# Of a document with waits that images of older releases do not know.
VERSION_WITH_WAITS = 2


@dataclass(frozen=True, slots=True)
class Part:
    """What is the same for every node of a role in every run of a job: worked out once, however many runs there are."""

    role: str
    called: str  # the role, by the nodes: a role that was renamed keeps its oldest name there
    launch: Mapping[str, Any]
    ads: Mapping[str, str]
    words: tuple[str, ...]
    runs_command: bool


def part_of(stack: Stack, job: Job, framework: Framework, role: str) -> Part:
    """The words that start training on a node are the role's own command or the job's."""
    words = tuple(shlex.split(job.roles[role].command or job.command))
    spec = framework.roles[role]
    return Part(
        role=role,
        called=_called(job, role),
        launch=_launch(stack, job, framework, role),
        ads=_ads(job, framework, role),
        words=words,
        runs_command=spec.runs_command,
    )


def document(part: Part, names: Mapping[str, str], job: Job, run: Run, node: str, rank: int | None) -> dict[str, Any]:
    """The launch document of one node, as schemas/launch.schema.json says it. Rank None: the cluster tells it."""
    folder, renamed = _folder(names), _renamed(job)
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
        "peers": {"from": "cluster-metadata" if job.layout == "node-groups" else "bucket"},
        "command": words if part.runs_command else [],
        "secrets": sorted(_secrets(job, run, part.role)),
    }


def _secrets(job: Job, run: Run, role: str) -> set[str]:
    """Names of the variables whose values the launcher must never print."""
    return {
        name
        for environment in (job.env, job.roles[role].env, run.env)
        for name, value in environment.items()
        if isinstance(value, Secret)
    }


def _launch(stack: Stack, job: Job, framework: Framework, role: str) -> dict[str, Any]:
    values = _placeholders(framework, job)
    awaits = list(_awaits(framework, job, role))
    command = [expand_braces(word, values) for word in framework.roles[role].awaits_command]
    return {
        "version": VERSION_WITH_WAITS if command or any("every" in row for row in awaits) else VERSION,
        "stack": stack.name,
        "framework": framework.name,
        "strategy": framework.strategy,
        "role": _called(job, role),
        "roles": [_role(framework, job, name) for name in framework.roles if name in job.roles],
        "gang": framework.gang,
        "processes": int(options_of(framework, job).get(framework.processes or "", 1)),
        "ports": _ports(framework, job, role),
        "start": [expand_braces(word, values) for word in start_words(framework, job, role)],
        "wrap": [expand_braces(word, values) for word in _wrap(framework, job)],
        "awaits": awaits,
        **({"awaitsCommand": command} if command else {}),
        "environment": {name: expand_braces(text, values) for name, text in _told(framework, job).items()},
        "options": options_of(framework, job),
        "retry": {"count": job.roles[role].retry.count},
        # Only what differs from the launcher's own: the document of a stack that does not name it stays as it is.
        **({} if job.stall_minutes == STALL_MINUTES else {"stallMinutes": job.stall_minutes}),
    }


def stall_minutes(job: Job, framework: Framework) -> int:
    """When a run that does nothing is ended; 0 where nobody watches: nodes that go on without the others may wait."""
    elastic = bool(options_of(framework, job).get("elastic"))
    return job.stall_minutes if framework.gang and job.nodes > 1 and not elastic else 0


def _role(framework: Framework, job: Job, name: str) -> dict[str, Any]:
    """What every node is told of a role: all of them work out by themselves whether the run is complete."""
    spec = job.roles[name]
    return {
        "name": _called(job, name),
        "replicas": spec.replicas,
        "service": framework.roles[name].service,
        "minFailed": spec.completion.min_failed,
        "minSucceeded": spec.completion.min_succeeded,
    }


def _wrap(framework: Framework, job: Job) -> tuple[str, ...]:
    options = options_of(framework, job)
    return next((row.words for row in framework.wraps if options.get(row.when)), ())


def _awaits(framework: Framework, job: Job, role: str) -> Iterator[dict[str, Any]]:
    """Ports that must answer: on the first node of the first role that listens, or on every node of each such role."""
    spec = framework.roles[role]
    for row, port in _awaited(framework, job, spec.awaits):
        yield {"role": _called(job, row.listens[0]), "port": port}
    for row, port in _awaited(framework, job, spec.awaits_every):
        yield from (
            {"role": _called(job, name), "port": port, "every": True}
            for name in row.listens
            if name in job.roles and job.roles[name].replicas
        )


def _awaited(framework: Framework, job: Job, labels: Sequence[str]) -> Iterator[tuple[PortRow, int]]:
    """Nobody listens on a port whose option is off."""
    options = options_of(framework, job)
    for row in (row for label in labels for row in framework.ports if row.label == label and active(row, options)):
        ports = chosen(row, job)
        yield row, 0 if ports is None else ports.first


def _told(framework: Framework, job: Job) -> dict[str, str]:
    """The framework's environment, and that of each option that is on."""
    options = options_of(framework, job)
    told = dict(framework.environment)
    for name, row in framework.options.items():
        if options[name]:
            told.update(row.environment)
    return told


def _ports(framework: Framework, job: Job, role: str) -> dict[str, Any]:
    """Every port of the job by label: whether this role listens on it, and how the launcher keeps to it."""
    options = options_of(framework, job)
    return {
        row.label: {"range": _pair(chosen(row, job)), "listens": role in row.listens, "pinned": row.pinned}
        for row in framework.ports
        if active(row, options)
    }


def _pair(ports: PortRange | None) -> list[int] | None:
    return None if ports is None else [ports.first, ports.last]


def start_words(framework: Framework, job: Job, role: str) -> list[str]:
    """The words that start the framework's own process for this role, options included."""
    options = options_of(framework, job)
    words = list(framework.roles[role].start)
    for extra in framework.start_options:
        if extra.role == role:
            words += extra.then if options.get(extra.when) else extra.otherwise
    return words


def _placeholders(framework: Framework, job: Job) -> dict[str, str]:
    """What `{port.label}` and `{option.name}` stand for; addresses and ranks are for the launcher to fill in."""
    values = {f"option.{name}": _plain(value) for name, value in options_of(framework, job).items()}
    for row in framework.ports:
        values |= _port_words(row, chosen(row, job))
    values["nodes"] = str(job.nodes)
    return {**values, **_renamed(job)}


def _called(job: Job, role: str) -> str:
    return job.roles[role].was.first(role) if role in job.roles else role


def _renamed(job: Job) -> dict[str, str]:
    """The launcher fills in `{address.<role>}` by the names that nodes are told."""
    return {
        f"{what}.{role}": f"{{{what}.{_called(job, role)}}}"
        for role, spec in job.roles.items()
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


def _folder(names: Mapping[str, str]) -> str:
    """Where everything lies that a run leaves, whatever its attempt."""
    return f"${{bucket}}/{names['job']}/{names['run']}"


def ads_environment(part: Part, names: Mapping[str, str], run: Run) -> dict[str, str]:
    """The OCI__ variables by which images built with ADS know their part."""
    if not part.ads:
        return {}
    words = _without_interpreter((*part.words, *run.args))
    told = {
        **part.ads,
        # Here ADS's nodes leave their addresses and a `stop`. Our provider makes it a place of each start (0009).
        "OCI__WORK_DIR": f"{_folder(names)}/{run.attempt}",
        "OCI__ENTRY_SCRIPT": words[0] if words else "",
        "OCI__ENTRY_SCRIPT_ARGS": shlex.join(words[1:]),
    }
    return {name: text for name, text in told.items() if text}


def _ads(job: Job, framework: Framework, role: str) -> dict[str, str]:
    if framework.ads is None:
        return {}
    values = _placeholders(framework, job)
    replicas = {spec.mode: job.roles[name].replicas for name, spec in framework.roles.items() if name in job.roles}
    told = {
        "OCI__EPHEMERAL": "0",
        "OCI__CLUSTER_TYPE": framework.ads.cluster,
        "OCI__WORKER_COUNT": str(replicas.get("WORKER", 0)),
        "OCI__START_ARGS": " ".join(expand_braces(word, values) for word in _ads_arguments(framework, job)),
        "OCI__MODE": framework.roles[role].mode,
        **{name: expand_braces(text, values) for name, text in framework.ads.environment.items()},
        **_git(job),
    }
    if "PS" in replicas:
        told["OCI__PS_COUNT"] = str(replicas["PS"])
    return told


def _ads_arguments(framework: Framework, job: Job) -> Iterator[str]:
    options = options_of(framework, job)
    if framework.ads is not None:
        yield from framework.ads.start_arguments
        for extra in framework.ads.start_options:
            yield from extra.then if options.get(extra.when) else extra.otherwise


def _without_interpreter(words: Sequence[str]) -> list[str]:
    """ADS names the script alone: `python train.py` is `train.py`."""
    return list(words[1:] if words and words[0] in ("python", "python3") else words)


def _git(job: Job) -> dict[str, str]:
    git = job.code.git if job.code else None
    if git is None:
        return {}
    named = {
        "OCI__RUNTIME_TYPE": "git",
        "OCI__RUNTIME_URI": git.url,
        "OCI__RUNTIME_GIT_BRANCH": git.branch,
        "OCI__RUNTIME_GIT_COMMIT": git.commit,
        "OCI__RUNTIME_GIT_SECRET_ID": git.secret,
    }
    return {name: text for name, text in named.items() if text}


def filled(environment: Mapping[str, EnvValue], names: Mapping[str, str]) -> dict[str, EnvValue]:
    """The team's own variables with references filled in; secrets are left alone."""
    return {name: value if isinstance(value, Secret) else expand(value, names) for name, value in environment.items()}
