# SPDX-License-Identifier: Apache-2.0
"""What an OpenPAI job asks of the runtime: prerequisites and plugins, with the commands that they run around a task."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from catalog.tables import table
from trainyard.bring.notes import CHOICE, LEFT_OUT, NO_EFFECT, NoteTaker, any_secret_text
from trainyard.bring.yaml_text import Path, YamlDocument

Command = tuple[str, int]
_EXTRAS = ("extras", "com.microsoft.pai.runtimeplugin")
_RUNS_COMMANDS = "cmd"
_OF_RUNTIME = "com.microsoft.pai.runtimeplugin."
_KINDS = ("data", "script", "output")
# Of a stack's own image.
_TAKEN = "image"
_CODE = "/usr/local/pai/code"


def carried_prerequisites(
    document: YamlDocument, taker: NoteTaker, rewrite: Callable[[str, int], str]
) -> list[dict[str, Any]]:
    """`prerequisites` of a job on OpenPAI. Every role gets all of them."""
    roles = {str(role): _names_of_role(document, str(role)) for role in document.table("taskRoles")}
    found: list[dict[str, Any]] = []
    for index, item in _data_prerequisites(document):
        name, line = str(item.get("name", "")), document.line("prerequisites", index)
        users = [role for role, names in roles.items() if name in names]
        if not users:
            message = f"the prerequisite `{name[:40]}` was left out: no role names it"
            taker.note(NO_EFFECT, line, message, "name it under `prerequisites` of the job, if it is needed")
            continue
        if len(users) < len(roles):
            message = f"all roles get the prerequisite `{name[:40]}`, which {', '.join(users)[:60]} named"
            taker.note(CHOICE, line, message, "remove its commands, if others must not run them")
        _note_other_plugin(document, index, item, taker)
        around = {event: list[str]() for event in ("taskStarts", "taskSucceeds")}
        for event, text, at in _plugin_callbacks(document, ("prerequisites", index)):
            around.setdefault(event, []).append(rewrite(text, at))
        uri = item.get("uri")
        places = [str(place) for place in (uri if isinstance(uri, list) else [uri]) if place]
        if not places:
            message = f"the prerequisite `{name[:40]}` names no place, so its name stands there"
            taker.note(CHOICE, line, message, "write its `uri`")
        row: dict[str, Any] = {"type": item["type"], "name": f"{name}-{item['type']}" if name == _TAKEN else name}
        row["uri"] = places or [name]
        row |= {"before": around["taskStarts"]} if around["taskStarts"] else {}
        row |= {"after": around["taskSucceeds"]} if around["taskSucceeds"] else {}
        found.append(row)
    # Commands refer to the first of a type, which is the one that the roles name.
    chosen = {document.text("taskRoles", role, kind) for role in roles for kind in _KINDS}
    return sorted(found, key=lambda row: row["name"] not in chosen)


def carried_plugins(
    document: YamlDocument, taker: NoteTaker, rewrite: Callable[[str, int], str]
) -> list[dict[str, Any]]:
    """`plugins` of a job on OpenPAI."""
    found: list[dict[str, Any]] = []
    for index, item in _runtime_plugins(document):
        line, name = document.line(*_EXTRAS, index), str(item.get("plugin", ""))
        parameters = item.get("parameters") or {}
        if name == _RUNS_COMMANDS:
            parameters = _rewritten_lists(parameters, lambda text, line=line: rewrite(text, line))  # type: ignore[misc]
        elif any_secret_text(parameters) or "$secrets." in str(parameters):
            message = f"the plugin `{name[:40]}` was left out: its parameters have a secret, which everybody could read"
            taker.note(LEFT_OUT, line, message, "let the command do its work, with a secret of `env`")
            continue
        row: dict[str, Any] = {"plugin": name}
        row |= {"parameters": parameters} if isinstance(parameters, Mapping) and parameters else {}
        row |= {"failurePolicy": item["failurePolicy"]} if item.get("failurePolicy") == "ignore" else {}
        row |= {"taskroles": list(item["taskroles"])} if isinstance(item.get("taskroles"), list) else {}
        found.append(row)
    return found


def note_plugins_elsewhere(document: YamlDocument, taker: NoteTaker) -> None:
    """Notes on the plugins that only OpenPAI has."""
    rows: Mapping[str, Mapping[str, Any]] = table("bring/openpai")["plugins"]
    for index, item in _runtime_plugins(document):
        name = str(item.get("plugin", ""))
        taker.judge_key(rows, name, f"the plugin `{name[:40]}`", document.line(*_EXTRAS, index))
    for index, item in _data_prerequisites(document):
        _note_other_plugin(document, index, item, taker)


def commands_around(document: YamlDocument, role: str) -> tuple[list[Command], list[Command]]:
    """The commands that the runtime runs before and after those of a role, in their order."""
    names = _names_of_role(document, role)
    around: dict[str, list[list[Command]]] = {"taskStarts": [], "taskSucceeds": []}
    for index, item in _data_prerequisites(document):
        if item.get("name") in names:
            _sort_callbacks(_plugin_callbacks(document, ("prerequisites", index)), around)
    for index, item in _runtime_plugins(document):
        chosen = item.get("taskroles")
        if isinstance(chosen, list) and role not in chosen:
            continue
        if item.get("plugin") == _RUNS_COMMANDS:
            _sort_callbacks(_plugin_callbacks(document, (*_EXTRAS, index, "parameters")), around)
        elif item.get("plugin") == "git":
            place = (*_EXTRAS, index, "parameters")
            options = "".join(f" {option}" for option in document.items(*place, "options"))
            source, folder = document.text(*place, "repo_uri"), document.text(*place, "clone_dir") or _CODE
            clone = f"git clone{options} -- {shlex.quote(source)} {folder}"
            around["taskStarts"].append([(clone, document.line(*place))])
    # What began last is ended first.
    after = [command for part in reversed(around["taskSucceeds"]) for command in part]
    return [command for part in around["taskStarts"] for command in part], after


def _sort_callbacks(callbacks: Iterator[tuple[str, str, int]], around: Mapping[str, list[list[Command]]]) -> None:
    parts: dict[str, list[Command]] = {event: [] for event in around}
    for event, text, line in callbacks:
        parts.setdefault(event, []).append((text.strip(), line))
    for event, part in parts.items():
        if part and event in around:
            around[event].append(part)


def _data_prerequisites(document: YamlDocument) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, item in enumerate(document.items("prerequisites")):
        if isinstance(item, Mapping) and item.get("type") in _KINDS:
            yield index, item


def _runtime_plugins(document: YamlDocument) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, item in enumerate(document.items(*_EXTRAS)):
        if isinstance(item, Mapping):
            yield index, item


def _names_of_role(document: YamlDocument, role: str) -> set[str]:
    listed = {str(name) for name in document.items("taskRoles", role, "prerequisites")}
    return listed | {document.text("taskRoles", role, kind) for kind in _KINDS}


def _plugin_callbacks(document: YamlDocument, path: Path) -> Iterator[tuple[str, str, int]]:
    """Event, command and line of each command."""
    for index, item in enumerate(document.items(*path, "callbacks")):
        for number, text in enumerate(document.items(*path, "callbacks", index, "commands")):
            if isinstance(item, Mapping) and isinstance(text, str):
                yield str(item.get("event", "")), text, document.line(*path, "callbacks", index, "commands", number)


def _note_other_plugin(document: YamlDocument, index: int, item: Mapping[str, Any], taker: NoteTaker) -> None:
    plugin = str(item.get("plugin") or "")
    if plugin and plugin != f"{_OF_RUNTIME}{_RUNS_COMMANDS}":
        message = f"the plugin `{plugin.removeprefix(_OF_RUNTIME)[:40]}` of the prerequisite was left out"
        line = document.line("prerequisites", index, "plugin")
        taker.note(LEFT_OUT, line, message, "write what it does as commands of the prerequisite")


def _rewritten_lists(value: Any, rewrite: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _rewritten_lists(item, rewrite) for key, item in value.items()}
    if isinstance(value, list):
        return [rewrite(item) if isinstance(item, str) else _rewritten_lists(item, rewrite) for item in value]
    return value
