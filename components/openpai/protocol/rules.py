# SPDX-License-Identifier: Apache-2.0
"""The rules of the protocol that a schema cannot express. Each gets a job that the schema allows.

`REFUSED`: rules of the REST server, from rest-server/src/middlewares/v2/protocol.js and hived.js (v1.8.0). `OBSTACLES`:
jobs that it accepts, but that Kubernetes cannot start. `ADVICE`: jobs that run, but not as their authors expect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from catalog.openpai import checker_problem, init_failure
from components.openpai.protocol.commands import (
    ESCAPED,
    TemplateError,
    commands_as_written,
    looked_up,
    references_in,
    require_readable,
    task_command,
    without_references,
)
from components.openpai.protocol.text import LONGEST_TEXT, text_of

Job = Mapping[str, Any]
# A task gets its command in one environment variable. Linux limits its length, including name and end.
LONGEST_COMMAND = 128 * 1024 - len("USER_CMD=") - 1
# Exit codes of jobs that the REST server accepts but Kubernetes refuses: the framework (setFailed of
# database-controller/src/common/framework.js), or the pod (pkg/apis/frameworkcontroller/v1/completion.go).
FRAMEWORK_REFUSED, POD_REFUSED = -1100, -200
_PLUGINS = "com.microsoft.pai.runtimeplugin"
_KINDS = {"dockerImage": "dockerimage", "data": "data", "output": "output", "script": "script"}
# A role's references of these kinds exist only if the role names such a prerequisite.
_OF_ROLE = ("data", "output", "script")


class Problem(NamedTuple):
    """A problem. `path`: the keys from the job to the value. `is_size`: the value is too large.

    `unhandled`: the REST server fails with an internal error. `code`: the exit code of a job that the REST server
    accepts nevertheless.
    """

    path: tuple[str | int, ...]
    message: str
    is_size: bool = False
    unhandled: bool = False
    code: int = 0

    def __str__(self) -> str:
        return f"{'.'.join(str(step) for step in self.path) or 'the job'}: {self.message}"


def _job_rows(job: Job, key: str) -> list[Any]:
    return job.get(key) or []


def _job_extras(job: Job) -> Mapping[str, Any]:
    return job.get("extras") or {}


def _object_keys(value: Any) -> list[str]:
    """The result of JavaScript's `Object.keys`."""
    if isinstance(value, Mapping):
        return list(value)
    return [str(at) for at in range(len(value))] if isinstance(value, str | list) else []


def _names_once(job: Job) -> Iterator[Problem]:
    by_type = Counter((row["type"], row["name"]) for row in _job_rows(job, "prerequisites"))
    for (kind, name), number in by_type.items():
        if number > 1:
            yield Problem(("prerequisites",), f"`{name}` is the name of {number} prerequisites of type {kind}")
    yield from _repeated_names(("deployments",), (row["name"] for row in _job_rows(job, "deployments")), "deployments")


def named_storages(job: Job) -> list[Mapping[str, Any]]:
    """The storages that a job asks for. Rows without a name do not count."""
    rows = _job_extras(job).get("storages")
    named = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return [row for row in named if row.get("name") not in (None, "", 0)]


def _mounts_differ(job: Job) -> Iterator[Problem]:
    """Two volumes of a pod must not have the same name or the same path."""
    rows = named_storages(job)
    path = ("extras", "storages")
    yield from _repeated_names(path, (str(row["name"]) for row in rows), "storages", POD_REFUSED)
    mounts = (row.get("mountPath") or f"/mnt/{row['name']}" for row in rows)
    yield from _repeated_names(path, mounts, "storages' mounts", POD_REFUSED)


def _repeated_names(path: tuple[str, ...], names: Iterable[str], what: str, code: int = 0) -> Iterator[Problem]:
    for name, number in Counter(names).items():
        if number > 1:
            yield Problem(path, f"`{name}` occurs {number} times among the {what}", code=code)


def _prerequisites_exist(job: Job) -> Iterator[Problem]:
    by_type = {(row["type"], row["name"]) for row in _job_rows(job, "prerequisites")}
    names = {name for _, name in by_type}
    for role, row in job["taskRoles"].items():
        for name in row.get("prerequisites", ()):
            if name not in names:
                yield Problem(("taskRoles", role, "prerequisites"), f"no prerequisite has the name `{name}`")
        for field, kind in _KINDS.items():
            if field in row and (kind, row[field]) not in by_type:
                yield Problem(("taskRoles", role, field), f"no prerequisite of type {kind} has the name `{row[field]}`")


def _deployment_exists(job: Job) -> Iterator[Problem]:
    chosen = (job.get("defaults") or {}).get("deployment")
    if chosen is not None and chosen not in {row["name"] for row in _job_rows(job, "deployments")}:
        yield Problem(("defaults", "deployment"), f"no deployment has the name `{chosen}`")


def _sku_or_cell(job: Job) -> Iterator[Problem]:
    """Checks the settings of the hived scheduler. Which SKUs exist depends on the cluster."""
    path, groups = ("extras", "hivedScheduler", "taskRoles"), dict[str, tuple[Any, Any]]()
    given = _job_extras(job).get("hivedScheduler")
    by_role = given.get("taskRoles") if isinstance(given, Mapping) else None
    yield from _roles_exist(job, path, _object_keys(by_role))
    for role, row in by_role.items() if isinstance(by_role, Mapping) else ():
        wanted = row.get("skuType"), row.get("pinnedCellId")
        if None not in wanted:
            message = "has both skuType and pinnedCellId, and the scheduler takes one of them"
            yield Problem((*path, role), message)
        group = row.get("affinityGroupName")
        if group is not None and groups.setdefault(group, wanted) != wanted:
            yield Problem((*path, role), f"the affinity group `{group}` has one skuType or pinnedCellId for all")


def _roles_of_plugins_exist(job: Job) -> Iterator[Problem]:
    for index, row in enumerate(_job_rows(job, "deployments")):
        yield from _roles_exist(job, ("deployments", index, "taskRoles"), row["taskRoles"])
    for index, row in enumerate(_job_extras(job).get(_PLUGINS, ())):
        yield from _roles_exist(job, ("extras", _PLUGINS, index, "taskroles"), row.get("taskroles", ()))


def _roles_exist(job: Job, path: tuple[str | int, ...], roles: Iterable[str]) -> Iterator[Problem]:
    for role in roles:
        if role not in job["taskRoles"]:
            yield Problem(path, f"no task role has the name `{role}`")


def controller_name(role: str) -> str:
    """The controller's name of a role, in `FC_TASKROLE_NAME` and in the names of `PAI_HOST_IP_…`."""
    return "".join(letter for letter in role.lower() if letter.isascii() and letter.isalnum())


def _roles_differ(job: Job) -> Iterator[Problem]:
    for short, number in Counter(map(controller_name, job["taskRoles"])).items():
        if number > 1 or not short:
            message = f"the controller calls {number} task roles `{short}`: it keeps lowercase letters and digits only"
            yield Problem(("taskRoles",), message, code=FRAMEWORK_REFUSED)


def _templates_are_readable(job: Job) -> Iterator[Problem]:
    for role in job["taskRoles"]:
        yield from _unreadable_template(("taskRoles", role, "commands"), partial(task_command, job, role))
    for index, row in enumerate(_job_rows(job, "prerequisites")):
        auth = row.get("auth") if row["type"] == "dockerimage" else None
        for key, text in (auth or {}).items():
            read = partial(require_readable, text if isinstance(text, str) else "")
            yield from _unreadable_template(("prerequisites", index, "auth", key), read)


def _unreadable_template(path: tuple[str | int, ...], read: Callable[[], object]) -> Iterator[Problem]:
    try:
        read()
    except TemplateError as error:
        yield Problem(path, str(error), unhandled=True)


def _references_exist(job: Job) -> Iterator[Problem]:
    secrets, parameters = job.get("secrets", {}), job.get("parameters", {})
    for role, row in job["taskRoles"].items():
        chosen = {kind: _prerequisite_named(job, kind, row[kind]) for kind in _OF_ROLE if kind in row}
        scope = {"secrets": secrets, "parameters": parameters, **chosen}
        texts = f"{commands_as_written(job, role)}\n{task_command(job, role)}"
        yield from _unfilled_references(("taskRoles", role, "commands"), texts, scope)
    for index, row in enumerate(_job_rows(job, "prerequisites")):
        for key, text in _image_auth(row).items():
            yield from _unfilled_references(("prerequisites", index, "auth", key), text, {"secrets": secrets})


def _image_auth(row: Mapping[str, Any]) -> dict[str, str]:
    """The texts of an image's `auth` that a cluster reads."""
    auth = row.get("auth") if row["type"] == "dockerimage" else None
    return {key: text for key, text in (auth or {}).items() if isinstance(text, str)}


def _unfilled_references(path: tuple[str | int, ...], text: str, scope: Mapping[str, Any]) -> Iterator[Problem]:
    for reference in dict.fromkeys(references_in(text)):
        if looked_up(scope, reference) is None:
            yield Problem(path, f"nothing is called `${reference}`")
    if "<%" in without_references(text):
        yield Problem(path, "`<%` begins a reference, but this is not one: `<% $parameters.name %>` is one")


def _prerequisite_named(job: Job, kind: str, name: str) -> Any:
    return next((row for row in _job_rows(job, "prerequisites") if (row["type"], row["name"]) == (kind, name)), None)


def _passwords_are_secrets(job: Job) -> Iterator[Problem]:
    for index, row in enumerate(_job_rows(job, "prerequisites")):
        password = _image_auth(row).get("password")
        if password and not any(reference.startswith("secrets.") for reference in references_in(password)):
            yield Problem(("prerequisites", index, "auth", "password"), "is readable by all: refer to a secret")


def _secrets_arrive(job: Job) -> Iterator[Problem]:
    """The runtime fills secrets into commands by mustache, which writes some characters as HTML does."""
    for role in job["taskRoles"]:
        for reference in dict.fromkeys(references_in(task_command(job, role))):
            value = looked_up({"secrets": job.get("secrets")}, reference)
            if isinstance(value, str) and ESCAPED & set(value):
                message = (
                    f"`<% ${reference} %>` does not arrive unchanged: OpenPAI's runtime writes & < > \" and ' as HTML "
                    "does (`&amp;`). Store the secret in Base64, and decode it in the command"
                )
                yield Problem(("taskRoles", role, "commands"), message)


def _images_are_checked(job: Job) -> Iterator[Problem]:
    for role in job["taskRoles"]:
        if problem := checker_problem(job, role):
            message = f"before a task begins, OpenPAI's image checker ends it with {init_failure('image')}: {problem}"
            yield Problem(("taskRoles", role, "dockerImage"), message)


def _commands_fit(job: Job) -> Iterator[Problem]:
    for role in job["taskRoles"]:
        size = len(task_command(job, role).encode())
        if size > LONGEST_COMMAND:
            message = f"has {size} bytes, and a task's command has at most {LONGEST_COMMAND}"
            yield Problem(("taskRoles", role, "commands"), message, is_size=True, code=POD_REFUSED)


def _text_fits(job: Job) -> Iterator[Problem]:
    size = len(text_of(job).encode())
    if size > LONGEST_TEXT:
        yield Problem((), f"has {size} bytes as text, and OpenPAI takes {LONGEST_TEXT} at the most", is_size=True)


def _retries_end(job: Job) -> Iterator[Problem]:
    for role, row in job["taskRoles"].items():
        if row.get("taskRetryCount", 0) < 0:
            yield Problem(("taskRoles", role, "taskRetryCount"), retry_reason(row["taskRetryCount"]))


def retry_reason(count: int) -> str:
    if count == -2:
        return (
            "is -2, which starts the job again even after success, on paid GPUs, until somebody stops it: "
            "give the number of retries"
        )
    if count == -1:
        return "is -1, and the protocol counts from 0: give the number of retries"
    return f"is {count}, and retries are counted from 0"


def _minima_count(job: Job) -> Iterator[Problem]:
    for role, row in job["taskRoles"].items():
        for key, count in (row.get("completion") or {}).items():
            if count == 0:
                yield Problem(("taskRoles", role, "completion", key), "is 0: give -1 or at least 1")


def _switches_switch(job: Job) -> Iterator[Problem]:
    """Checks that switches are booleans: JavaScript takes any text for true, and only `false` itself turns off a
    gang."""
    if not isinstance(_job_extras(job).get("gangAllocation", True), bool):
        yield Problem(("extras", "gangAllocation"), "is not of type boolean")
    for role, row in job["taskRoles"].items():
        if not isinstance((row.get("extraContainerOptions") or {}).get("infiniband", True), bool):
            yield Problem(("taskRoles", role, "extraContainerOptions", "infiniband"), "is not of type boolean")


Rules = tuple[Callable[[Job], Iterator[Problem]], ...]
REFUSED: Rules = (_names_once, _prerequisites_exist, _deployment_exists, _templates_are_readable, _sku_or_cell)
OBSTACLES: Rules = (_mounts_differ, _roles_differ, _commands_fit)
ADVICE: Rules = (
    _roles_of_plugins_exist,
    _references_exist,
    _secrets_arrive,
    _images_are_checked,
    _passwords_are_secrets,
    _retries_end,
    _minima_count,
    _switches_switch,
    _text_fits,
)
