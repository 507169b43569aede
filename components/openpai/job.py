# SPDX-License-Identifier: Apache-2.0
"""A run as a job of OpenPAI's protocol. Pure. Secrets are `Secret` values, below `secrets` only."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.openpai import has_runtime_reference, reads_unchanged, registry_of, same_registry
from components.openpai import plain_command
from components.openpai.client.inputs import as_base64
from components.openpai.client.jobs import job_name
from components.openpai.plain_command import PlainCommand, as_is_commands, quote_word
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan, TaskRolePlan
from components.openpai.stack import IMAGE_NAME, RUNS_COMMANDS, Prerequisite
from components.plan.model import NodePlan, RunPlan, expand_references
from components.plan.packed_code import UNPACKING_PROGRAM
from schemas.model import EnvValue, Git, Secret

PARAMETER = "trainyard_code"
_END = "TRAINYARD_CODE"
Protocol = dict[str, Any]
_IMAGE = IMAGE_NAME
# No environment variable can have such a name.
_PASSWORD = "image-password"
_RUNTIME_PLUGINS = "com.microsoft.pai.runtimeplugin"
_FILE = "file://"


def unpack_commands() -> Iterator[str]:
    """Unpacks the code into a new folder and changes there. All roles use one parameter of the job."""
    yield 'trainyard_code="$(mktemp -d)"'
    # Isolated, so that Python's own modules are used, not those of the image's folder or of the job's PYTHONPATH.
    # Warnings are off, because Python 3.12 and later warn about a change of tarfile in 3.14.
    unpacks = f'"$trainyard_python" -I -W ignore -c \'{UNPACKING_PROGRAM}\' "$trainyard_code"'
    yield f"{unpacks} <<'{_END}'\n<% $parameters.{PARAMETER} %>\n{_END}"
    yield 'cd "$trainyard_code"'


def clone_commands(git: Git) -> Iterator[str]:
    """Clones the code, for commands without the launcher, which clones itself."""
    branch = f"--branch {quote_word(git.branch)} " if git.branch else ""
    yield 'trainyard_code="$(mktemp -d)"'
    yield f'git clone --quiet {branch}-- {quote_word(git.url)} "$trainyard_code"'
    yield 'cd "$trainyard_code"'
    if git.commit:
        yield f"git checkout --quiet {quote_word(git.commit)}"


def protocol_of(plan: OpenPaiPlan, job: OpenPaiJobPlan, run: RunPlan, code: str | None) -> Protocol:
    """The job of a run, without its name, which the provider adds. `code`: the packed folder."""
    first = {role.called: next(node for node in run.nodes if node.role == role.called) for role in job.roles}
    values = {"bucket": plan.store.uri, "registry": plan.registry_address}
    secrets = _job_secrets(plan, job, first)
    # Commands have secrets in Base64. The value of one is unknown if only the stack file was read.
    job_secrets = {
        key: Secret(base64.b64encode((value.value or "").encode()).decode()) for key, value in secrets.items()
    }
    if job.image_auth:
        job_secrets[_PASSWORD] = job.image_auth.password
    uri = expand_references(job.image, values)
    image: Protocol = {"type": "dockerimage", "name": _IMAGE, "uri": uri}
    if job.image_auth is not None:
        password = f"<% $secrets.{_PASSWORD} %>"
        registry = same_registry(job.image_auth.registry or registry_of(uri))
        image["auth"] = {"username": job.image_auth.user, "password": password, "registryuri": registry}
    made: Protocol = {
        "protocolVersion": 2,
        "type": "job",
        "jobRetryCount": job.retry_count,
        "prerequisites": [image, *map(_protocol_prerequisite, job.prerequisites)],
        "parameters": {**job.parameters, **({PARAMETER: code} if code is not None else {})},
        "secrets": job_secrets,
        "taskRoles": {
            role.called: _protocol_task_role(
                job,
                role.replicas,
                job.task_roles[role.called],
                list(_role_commands(plan, job, first[role.called], code is not None, secrets)),
            )
            for role in job.roles
        },
        "defaults": {"virtualCluster": plan.cluster.virtual_cluster},
        "extras": _protocol_extras(plan, job, expand_references(first[job.roles[0].called].launch["folder"], values)),
    }
    return {key: value for key, value in made.items() if value != {}}


def protocol_to_check(protocol: Protocol, run: RunPlan) -> Protocol:
    """The job as it is checked: with the longest name that the provider may give it, and secrets as texts."""
    secrets = {key: value.value or "" for key, value in protocol.get("secrets", {}).items()}
    made = {**protocol, "name": job_name(run.display_name, "0" * 8, 100), "secrets": secrets}
    return made if secrets else {key: value for key, value in made.items() if key != "secrets"}


def _protocol_prerequisite(one: Prerequisite) -> Protocol:
    """A prerequisite. Only data may have several URIs. Commands need the runtime's plugin that runs them."""
    row: Protocol = {"type": one.type, "name": one.name, "uri": list(one.uri) if one.type == "data" else one.uri[0]}
    events = {"taskStarts": one.before, "taskSucceeds": one.after}
    callbacks = [{"event": event, "commands": _with_commands(each)} for event, each in events.items() if each]
    return {**row, "plugin": f"{_RUNTIME_PLUGINS}.cmd", "callbacks": callbacks} if callbacks else row


def _arriving_command(command: str) -> str:
    """A command in a form that the runtime reads unchanged. `check` refuses commands for which there is none."""
    return command if reads_unchanged(command) or has_runtime_reference(command) else as_base64(command)


def _protocol_task_role(job: OpenPaiJobPlan, instances: int, plan: TaskRolePlan, commands: list[str]) -> Protocol:
    sku = plan.sku
    resources: Protocol = {"cpu": sku.cpus, "memoryMB": sku.memory_mb, "gpu": sku.gpus}
    if plan.ports:
        resources["ports"] = dict(plan.ports)
    options: Protocol = {"shmMB": sku.shm_mb} if sku.shm_mb else {}
    options |= {"infiniband": True} if sku.infiniband else {}
    prerequisites: Protocol = {}
    if job.prerequisites:
        # All of them, and the first of each type, to which commands refer.
        prerequisites = {one.type: one.name for one in reversed(job.prerequisites)}
        prerequisites["prerequisites"] = [one.name for one in job.prerequisites]
    return {
        "instances": instances,
        "completion": {"minFailedInstances": plan.min_failed, "minSucceededInstances": plan.min_succeeded},
        "taskRetryCount": plan.retry_count,
        "dockerImage": _IMAGE,
        **prerequisites,
        "resourcePerInstance": resources,
        **({"extraContainerOptions": options} if options else {}),
        "commands": commands,
    }


def _protocol_extras(plan: OpenPaiPlan, job: OpenPaiJobPlan, folder: str) -> Protocol:
    # By the last three keys, the local cluster chooses an environment in place of the image.
    own = {
        "folder": folder,
        "framework": job.framework,
        "strategy": job.strategy,
        "packages": job.packages.digest if job.packages else None,
    }
    known = {key: value for key, value in own.items() if value is not None}
    extras: Protocol = {"submitFrom": "trainyard", "trainyard": known}
    if not job.gang:
        # Only without a gang can OpenPAI retry a single task.
        extras["gangAllocation"] = False
    if plan.store.storage is not None:
        extras["storages"] = [{"name": plan.store.storage.name, "mountPath": plan.store.storage.mount}]
    # The hived scheduler takes the job's priority, and the SKU or cell of each role.
    rows: dict[str, Protocol] = {}
    for name, role in job.task_roles.items():
        choices = {"skuType": role.sku.sku, "pinnedCellId": role.sku.pinned_cell_id}
        if chosen := {key: value for key, value in choices.items() if value is not None}:
            rows[name] = {**chosen, "skuNum": max(1, role.sku.gpus)}
    priority: Protocol = {"jobPriorityClass": job.priority} if job.priority else {}
    if hived := {**priority, **({"taskRoles": rows} if rows else {})}:
        extras["hivedScheduler"] = hived
    if job.plugins:
        extras[_RUNTIME_PLUGINS] = [
            {
                "plugin": one.plugin,
                "parameters": (_with_commands if one.plugin == RUNS_COMMANDS else dict)(one.parameters),
                "failurePolicy": one.failure_policy,
                **({"taskroles": list(one.taskroles)} if one.taskroles else {}),
            }
            for one in job.plugins
        ]
    return extras


def _with_commands(parameters: Any) -> Any:
    """The parameters of the plugin that runs commands: one list item for each command."""
    if isinstance(parameters, Mapping):
        return {key: _with_commands(value) for key, value in parameters.items()}
    if isinstance(parameters, list | tuple):
        return [_arriving_command(one) if isinstance(one, str) else _with_commands(one) for one in parameters]
    return parameters


def _role_commands(
    plan: OpenPaiPlan, job: OpenPaiJobPlan, node: NodePlan, has_code: bool, secrets: Mapping[str, Secret]
) -> Iterator[str]:
    """The lines that bash runs in each task of a role."""
    values = {"bucket": plan.store.uri, "registry": plan.registry_address}
    yield 'trainyard_python="$(command -v python || command -v python3)"'
    yield from (plain_command.parameter_line(name) for name in job.parameters)
    for name, value in {**plan.store.variables, **node.environment}.items():
        if isinstance(value, Secret):
            yield plain_command.secret_line(name, name if name in secrets else f"{name}-{node.role}")
        else:
            yield plain_command.export_line(name, plain_command.quote_word(expand_references(value, values)))
    git = job.code.git if job.code else None
    launch = {**node.launch, "node": node.role, "rank": None}
    if has_code:
        yield from unpack_commands()
    minutes, store = job.maximum_runtime_minutes, plan.store.uri.removeprefix(_FILE)
    limit = time_limit_command(minutes), minutes * 60
    if job.start != "launcher":
        yield from clone_commands(git) if git else ()
    if job.start == "as-is":
        # `command` is not filled in, because all of it belongs to bash.
        yield from as_is_commands(launch, store if plan.store.storage else "", *limit)
    elif job.start == "plain":
        reserved = {label: label.replace("-", "_") for label, port in launch["ports"].items() if port.get("reserved")}
        listeners = {
            label: [role.called for role in job.roles if name in job.task_roles[role.called].ports]
            for label, name in reserved.items()
        }
        yield from PlainCommand(_fill_references(launch, values), listeners, store, *limit).commands()
    else:
        # Until then, the launcher retries transient failures.
        yield plain_command.export_line("TRAINYARD_MAXIMUM_MINUTES", str(minutes))
        yield plain_command.export_line("TRAINYARD_LAUNCH", plain_command.json_word(_fill_references(launch, values)))
        yield f'exec {time_limit_command(minutes)} "$trainyard_python" -I -m launcher'


def time_limit_command(minutes: int) -> str:
    """The command that enforces the maximum runtime: OpenPAI itself has no such limit."""
    return f"timeout --kill-after=60 {minutes}m"


def _fill_references(value: Any, values: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return expand_references(value, values)
    if isinstance(value, Mapping):
        return {key: _fill_references(item, values) for key, item in value.items()}
    return [_fill_references(item, values) for item in value] if isinstance(value, list | tuple) else value


def _job_secrets(plan: OpenPaiPlan, job: OpenPaiJobPlan, nodes: Mapping[str, NodePlan]) -> dict[str, Secret]:
    """The job's secrets, by variable, or by variable and role if roles have different values."""
    shared: dict[str, list[tuple[str, Secret]]] = {}
    for role, node in nodes.items():
        own: dict[str, EnvValue] = {**plan.store.variables, **node.environment}
        for name, value in own.items():
            if isinstance(value, Secret):
                shared.setdefault(name, []).append((role, value))
    found: dict[str, Secret] = {}
    for name, rows in shared.items():
        if len({value.value for _, value in rows}) == 1:
            found[name] = rows[0][1]
        else:
            found |= {f"{name}-{role}": value for role, value in rows}
    return found
