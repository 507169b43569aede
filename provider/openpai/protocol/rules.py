# SPDX-License-Identifier: Apache-2.0
"""The rules of the protocol that no schema can say. Each takes a job of the right shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from provider.openpai.protocol.commands import entrypoint, looked_up, references, without_references
from provider.openpai.protocol.text import LONGEST_TEXT, text_of

Job = Mapping[str, Any]
# A task gets its command in one environment variable. Linux takes no longer text there, name and end included.
LONGEST_COMMAND = 128 * 1024 - len("USER_CMD=") - 1
_PLUGINS = "com.microsoft.pai.runtimeplugin"
_KINDS = {"dockerImage": "dockerimage", "data": "data", "output": "output", "script": "script"}
# What a role refers to by these exists for that role only if the role names such a prerequisite.
_OF_ROLE = ("data", "output", "script")


class Problem(NamedTuple):
    """What is wrong, and where: `path` leads from the job to the value. `is_size`: there is too much of it."""

    path: tuple[str | int, ...]
    message: str
    is_size: bool = False

    def __str__(self) -> str:
        return f"{'.'.join(str(step) for step in self.path) or 'the job'}: {self.message}"


def _names_once(job: Job) -> Iterator[Problem]:
    by_type = Counter((row["type"], row["name"]) for row in job["prerequisites"])
    for (kind, name), number in by_type.items():
        if number > 1:
            yield Problem(("prerequisites",), f"`{name}` is the name of {number} prerequisites of type {kind}")
    yield from _repeated(("deployments",), (row["name"] for row in job.get("deployments", ())), "deployments")
    storages = [row for row in job.get("extras", {}).get("storages", ()) if row.get("name")]
    yield from _repeated(("extras", "storages"), (row["name"] for row in storages), "storages")
    mounts = (row.get("mountPath") or f"/mnt/{row['name']}" for row in storages)
    yield from _repeated(("extras", "storages"), mounts, "storages' mounts")


def _repeated(path: tuple[str, ...], names: Iterable[str], what: str) -> Iterator[Problem]:
    for name, number in Counter(names).items():
        if number > 1:
            yield Problem(path, f"`{name}` stands {number} times among the {what}")


def _prerequisites_exist(job: Job) -> Iterator[Problem]:
    by_type = {(row["type"], row["name"]) for row in job["prerequisites"]}
    names = {name for _, name in by_type}
    for role, row in job["taskRoles"].items():
        for name in row.get("prerequisites", ()):
            if name not in names:
                yield Problem(("taskRoles", role, "prerequisites"), f"no prerequisite has the name `{name}`")
        for field, kind in _KINDS.items():
            if field in row and (kind, row[field]) not in by_type:
                yield Problem(("taskRoles", role, field), f"no prerequisite of type {kind} has the name `{row[field]}`")


def _deployments_exist(job: Job) -> Iterator[Problem]:
    deployments = {row["name"]: row for row in job.get("deployments", ())}
    chosen = job.get("defaults", {}).get("deployment")
    if chosen is not None and chosen not in deployments:
        yield Problem(("defaults", "deployment"), f"no deployment has the name `{chosen}`")
    for index, row in enumerate(job.get("deployments", ())):
        yield from _roles_exist(job, ("deployments", index, "taskRoles"), row["taskRoles"])


def _extras_exist(job: Job) -> Iterator[Problem]:
    extras = job.get("extras", {})
    by_role = extras.get("hivedScheduler", {}).get("taskRoles", {})
    yield from _roles_exist(job, ("extras", "hivedScheduler", "taskRoles"), by_role)
    for role, row in by_role.items():
        if row.get("skuType") is not None and row.get("pinnedCellId") is not None:
            path = ("extras", "hivedScheduler", "taskRoles", role)
            yield Problem(path, "has both skuType and pinnedCellId, and the scheduler takes one of them")
    for index, row in enumerate(extras.get(_PLUGINS, ())):
        yield from _roles_exist(job, ("extras", _PLUGINS, index, "taskroles"), row.get("taskroles", ()))


def _roles_exist(job: Job, path: tuple[str | int, ...], roles: Iterable[str]) -> Iterator[Problem]:
    for role in roles:
        if role not in job["taskRoles"]:
            yield Problem(path, f"no task role has the name `{role}`")


def controller_name(role: str) -> str:
    """What the controller calls a role: `FC_TASKROLE_NAME`, and the role in the names of `PAI_HOST_IP_…`."""
    return "".join(letter for letter in role.lower() if letter.isascii() and letter.isalnum())


def _roles_differ(job: Job) -> Iterator[Problem]:
    for short, number in Counter(map(controller_name, job["taskRoles"])).items():
        if number > 1 or not short:
            message = f"the controller calls {number} task roles `{short}`: it keeps lowercase letters and digits only"
            yield Problem(("taskRoles",), message)


def _references_exist(job: Job) -> Iterator[Problem]:
    secrets, parameters = job.get("secrets", {}), job.get("parameters", {})
    for role, row in job["taskRoles"].items():
        chosen = {kind: _named(job, kind, row[kind]) for kind in _OF_ROLE if kind in row}
        scope = {"secrets": secrets, "parameters": parameters, **chosen}
        yield from _unfilled(("taskRoles", role, "commands"), entrypoint(job, role), scope)
    for index, row in enumerate(job["prerequisites"]):
        for key, text in row.get("auth", {}).items():
            yield from _unfilled(("prerequisites", index, "auth", key), text, {"secrets": secrets})


def _unfilled(path: tuple[str | int, ...], text: str, scope: Mapping[str, Any]) -> Iterator[Problem]:
    for reference in references(text):
        if looked_up(scope, reference) is None:
            yield Problem(path, f"nothing is called `${reference}`")
    if "<%" in without_references(text):
        yield Problem(path, "`<%` begins a reference, and this is none: `<% $parameters.name %>` is one")


def _named(job: Job, kind: str, name: str) -> Any:
    return next((row for row in job["prerequisites"] if (row["type"], row["name"]) == (kind, name)), None)


def _passwords_are_secrets(job: Job) -> Iterator[Problem]:
    for index, row in enumerate(job["prerequisites"]):
        password = row.get("auth", {}).get("password")
        if password and not any(reference.startswith("secrets.") for reference in references(password)):
            yield Problem(("prerequisites", index, "auth", "password"), "is readable by all: refer to a secret")


def _short_enough(job: Job) -> Iterator[Problem]:
    for role in job["taskRoles"]:
        size = len(entrypoint(job, role).encode())
        if size > LONGEST_COMMAND:
            message = f"has {size} bytes, and a task takes no command longer than {LONGEST_COMMAND}"
            yield Problem(("taskRoles", role, "commands"), message, is_size=True)
    size = len(text_of(job).encode())
    if size > LONGEST_TEXT:
        yield Problem((), f"has {size} bytes as text, and OpenPAI takes {LONGEST_TEXT} at the most", is_size=True)


RULES: tuple[Callable[[Job], Iterator[Problem]], ...] = (
    _names_once,
    _prerequisites_exist,
    _deployments_exist,
    _extras_exist,
    _roles_differ,
    _references_exist,
    _passwords_are_secrets,
    _short_enough,
)
