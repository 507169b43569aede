# SPDX-License-Identifier: Apache-2.0
"""The launch document, which our launcher reads on each node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.frameworks import PortRow
from catalog.frameworks.validation import FORMS_OF_A_PORT
from components.plan.model import expand_references
from components.plan.ports import ResolvedJob
from schemas.model import STALL_MINUTES, EnvValue, Run, Secret, Stack

VERSION = 1
# Versions of the document. This one has waits, which launchers in older images do not support.
VERSION_WITH_WAITS = 2
# This one names the code repository, which older launchers do not support.
VERSION_WITH_CODE = 3
# This one has the files to keep, which older launchers would lose.
VERSION_WITH_KEEP = 4
# This one has ports that the platform reserves, whose numbers a node learns only when it starts.
VERSION_WITH_RESERVED_PORTS = 5
# This one names systems that the script speaks, whose variables and programs older launchers do not have.
VERSION_WITH_SYSTEMS = 6
# A script that speaks another system hears from it which process it is, and from the framework only this.
_OF_ANY_SYSTEM = "{interface}"


@dataclass(frozen=True, slots=True)
class RolePart:
    """The values that all nodes of a role share in all runs of a job. Computed once, for any number of runs."""

    role: str
    called: str
    launch: Mapping[str, Any]
    words: tuple[str, ...]
    runs_command: bool
    peers: str


def role_part(stack: Stack, job: ResolvedJob, role: str, peers: str, names_code: bool) -> RolePart:
    """The shared part of a role. Its command is its own or the job's. `peers`: how nodes find one another."""
    words = tuple(shlex.split(job.spec.roles[role].command or job.spec.command))
    # Not every launcher supports the repository of the code.
    git = job.spec.code.git if job.spec.code and names_code else None
    named = {"url": git.url, "branch": git.branch, "commit": git.commit, "secret": git.secret} if git else {}
    code = {"git": {key: value for key, value in named.items() if value}}
    return RolePart(
        role=role,
        called=job.called(role),
        launch={
            **_launch_of_role(stack, job, role),
            **({"version": VERSION_WITH_CODE, "code": code} if git else {}),
            **({"version": VERSION_WITH_KEEP, "keep": list(job.spec.keep)} if job.spec.keep else {}),
            **({"version": VERSION_WITH_RESERVED_PORTS} if any(map(job.is_reserved, job.active_ports())) else {}),
            **({"version": VERSION_WITH_SYSTEMS, "speaks": list(job.spec.speaks)} if job.spec.speaks else {}),
        },
        words=words,
        runs_command=job.framework.roles[role].runs_command,
        peers=peers,
    )


def make_launch_document(
    part: RolePart, names: Mapping[str, str], job: ResolvedJob, run: Run, node: str, rank: int | None
) -> dict[str, Any]:
    """The launch document of one node (schemas/launch.schema.json). If the rank is None, the cluster supplies it."""
    folder, renamed = run_folder(names), _renamed_placeholders(job)
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
        # The launcher must never print the values of these variables.
        "secrets": sorted(
            {
                name
                for environment in (job.spec.env, job.spec.roles[part.role].env, run.env)
                for name, value in environment.items()
                if isinstance(value, Secret)
            }
        ),
    }


def _launch_of_role(stack: Stack, job: ResolvedJob, role: str) -> dict[str, Any]:
    values, options, framework = plan_placeholders(job), job.options, job.framework
    # Ports that must answer before the command starts: on the first listening node, or on every one.
    awaits: list[dict[str, Any]] = []
    for row, port in _first_port_by_row(job, framework.roles[role].awaits):
        awaits.append({"role": job.called(row.listens[0]), **port})
    for row, port in _first_port_by_row(job, framework.roles[role].awaits_every):
        listening = (name for name in row.listens if name in job.spec.roles and job.spec.roles[name].replicas)
        awaits += ({"role": job.called(name), **port, "every": True} for name in listening)
    command = [expand_braces(word, values) for word in framework.roles[role].awaits_command]
    wrap = next((wrap.words for wrap in framework.wraps if wrap.when is None or options.get(wrap.when)), ())
    environment = dict(framework.environment)
    for name, option in framework.options.items():
        if options[name]:
            environment.update(option.environment)
    if job.spec.speaks:
        environment = {key: text for key, text in environment.items() if text == _OF_ANY_SYSTEM or "{" not in text}
    return {
        "version": VERSION_WITH_WAITS if command or any("every" in row for row in awaits) else VERSION,
        "stack": stack.name,
        "framework": framework.name,
        "strategy": framework.strategy,
        "role": job.called(role),
        "roles": [_launch_role(job, name) for name in framework.roles if name in job.spec.roles],
        "gang": framework.gang,
        "processes": int(options.get(framework.processes or "", 1)),
        # Every port of the job: does this role listen on it, and how does the launcher pin it?
        "ports": {
            row.label: {
                "range": None if ports is None else [ports.first, ports.last],
                "listens": role in row.listens,
                "pinned": row.pinned,
                **({"reserved": 1} if job.is_reserved(row) else {}),
            }
            for row in job.active_ports()
            for ports in [job.ports_of(row)]
        },
        "start": [expand_braces(word, values) for word in start_words(job, role)],
        "wrap": [expand_braces(word, values) for word in wrap],
        "awaits": awaits,
        **({"awaitsCommand": command} if command else {}),
        "environment": {name: expand_braces(text, values) for name, text in environment.items()},
        "options": options,
        "retry": {"count": job.spec.roles[role].retry.count},
        # Written only if it differs from the launcher's default, so that documents of other stacks keep their bytes.
        **({} if job.spec.stall_minutes == STALL_MINUTES else {"stallMinutes": job.spec.stall_minutes}),
        # Other packages train another model: the run starts again, as it does with other code.
        **({"packages": job.packages.digest} if job.packages else {}),
    }


def stall_minutes(job: ResolvedJob) -> int:
    """Idle minutes after which a run is stopped. 0 if nodes can continue without one another and may be idle."""
    return job.spec.stall_minutes if job.is_watched else 0


def _launch_role(job: ResolvedJob, name: str) -> dict[str, Any]:
    """A role as every node sees it. Each node decides on its own whether the run is complete, so it needs all roles."""
    spec = job.spec.roles[name]
    return {
        "name": job.called(name),
        "replicas": spec.replicas,
        "service": job.framework.roles[name].service,
        "minFailed": spec.completion.min_failed,
        "minSucceeded": spec.completion.min_succeeded,
    }


def _first_port_by_row(job: ResolvedJob, labels: Sequence[str]) -> Iterator[tuple[PortRow, dict[str, int | str]]]:
    """The rows of these labels with their first port, without ports whose option is off: nobody listens there.

    A port that the platform reserves has no number yet.
    """
    for row in (row for label in labels for row in job.framework.ports if row.label == label and job.is_active(row)):
        ports = job.ports_of(row)
        yield row, {"label": row.label} if job.is_reserved(row) else {"port": 0 if ports is None else ports.first}


def start_words(job: ResolvedJob, role: str) -> list[str]:
    """The words that start the framework's own process for this role, options included."""
    options = job.options
    words = list(job.framework.roles[role].start)
    for extra in job.framework.start_options:
        if extra.role == role:
            words += extra.then if options.get(extra.when) else extra.otherwise
    return words


def plan_placeholders(job: ResolvedJob) -> dict[str, str]:
    """Values of `{port.label}` and `{option.name}`. The launcher fills in addresses and ranks itself."""
    values = {
        f"option.{name}": str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in job.options.items()
    }
    for row in job.framework.ports:
        name, ports = f"port.{row.label}", job.ports_of(row)
        # The launcher fills in a port that the platform reserves.
        if not job.is_reserved(row) and ports is None:
            values |= dict.fromkeys((f"{name}{form}" for form in FORMS_OF_A_PORT), "0")
        elif not job.is_reserved(row) and ports is not None:
            values[name] = str(ports)
            values[f"{name}:colon"] = str(ports.first) if ports.size == 1 else f"{ports.first}:{ports.last}"
            values[f"{name}:first"], values[f"{name}:last"] = str(ports.first), str(ports.last)
    values["nodes"] = str(job.spec.nodes)
    return {**values, **_renamed_placeholders(job)}


def _renamed_placeholders(job: ResolvedJob) -> dict[str, str]:
    """Placeholders with a renamed role -> with its oldest name, which is the one that nodes know."""
    return {
        f"{what}.{role}": f"{{{what}.{job.called(role)}}}"
        for role, spec in job.spec.roles.items()
        for what in ("address", "addresses")
        if spec.was.names
    }


def expand_braces(text: str, values: Mapping[str, str]) -> str:
    """Fills in `{name}` for these names, and leaves other names to the launcher."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def run_folder(names: Mapping[str, str]) -> str:
    """The folder of a run in the bucket, for all its attempts."""
    return f"${{bucket}}/{names['job']}/{names['run']}"


def fill_references(environment: Mapping[str, EnvValue], names: Mapping[str, str]) -> dict[str, EnvValue]:
    """The team's variables with references filled in. Secrets stay as they are."""
    return {
        name: value if isinstance(value, Secret) else expand_references(value, names)
        for name, value in environment.items()
    }
