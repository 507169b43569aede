# SPDX-License-Identifier: Apache-2.0
"""What a cluster makes of a task role's commands: one text for bash, with references filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from components.openpai.protocol.template import render
from components.openpai.protocol.text import shown

# `<% $parameters.model %>`, `<% $data.uri[0] %>`
_REFERENCE = re.compile(r"<%\s*\$([^%\s]*)\s*%>")
_PREREQUISITES = ("script", "output", "data")


def entrypoint(job: Mapping[str, Any], role: str) -> str:
    """The command of a role's tasks: `USER_CMD`. References to secrets stay; each task's runtime fills them in.

    Raises `TemplateError` where the REST server cannot read it.
    """
    return _rendered(written(job, role), _scope(job, role))


def written(job: Mapping[str, Any], role: str) -> str:
    """The commands of a role's tasks before anything is filled in."""
    own = _deployment(job).get(role, {})
    commands = [*own.get("preCommands", ()), *job["taskRoles"][role]["commands"], *own.get("postCommands", ())]
    return "\n".join(one.strip() for one in commands)


def require_readable(text: str) -> None:
    """Raises `TemplateError` where the REST server cannot read a text."""
    render(text, lambda name: None)


def with_secrets(text: str, secrets: Mapping[str, Any] | None) -> str:
    """A text with its references to secrets filled in, as a task's runtime does it."""
    return filled(text, {"secrets": secrets or {}})


def runtime_text(job: Mapping[str, Any], role: str, text: str) -> str:
    """A text of a runtime plugin, with all its references filled in: a task's runtime knows the secrets, too."""
    return filled(text, {**_scope(job, role), "secrets": job.get("secrets") or {}})


def filled(text: str, scope: Mapping[str, Any]) -> str:
    """References that the scope lacks stay as they are."""

    def fill(reference: re.Match[str]) -> str:
        value = looked_up(scope, reference[1])
        return reference[0] if value is None else shown(value)

    return _REFERENCE.sub(fill, text)


def _rendered(text: str, scope: Mapping[str, Any]) -> str:
    """As the REST server fills in a text. It hides `$` before the names of what it knows."""

    def fill(name: str) -> str | None:
        value = looked_up(scope, name.removeprefix("$")) if name.startswith("$") else None
        return None if value is None else shown(value)

    return render(text, fill)


def references(text: str) -> Iterator[str]:
    """What a text refers to, such as `parameters.model`."""
    return (reference[1] for reference in _REFERENCE.finditer(text))


def without_references(text: str) -> str:
    return _REFERENCE.sub("", text)


def looked_up(scope: Mapping[str, Any], reference: str) -> Any:
    """The value of `data.uri[0]`, or None."""
    value: Any = scope
    for step in re.sub(r"\[(\d+)\]", r".\1", reference).split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _scope(job: Mapping[str, Any], role: str) -> dict[str, Any]:
    task_role = job["taskRoles"][role]
    chosen = {kind: _prerequisite(job, kind, task_role.get(kind)) for kind in _PREREQUISITES}
    return {"parameters": job.get("parameters"), **chosen}


def _prerequisite(job: Mapping[str, Any], kind: str, name: str | None) -> Any:
    rows = job.get("prerequisites") or ()
    return next((row for row in rows if row["type"] == kind and row["name"] == name), None)


def _deployment(job: Mapping[str, Any]) -> Mapping[str, Any]:
    name = job.get("defaults", {}).get("deployment")
    found = next((row["taskRoles"] for row in job.get("deployments", ()) if row["name"] == name), None)
    return found if isinstance(found, Mapping) else {}
