# SPDX-License-Identifier: Apache-2.0
"""The scripts of a task, as OpenPAI's runtime writes them: the plugins' commands and the user's, secrets filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.openpai import UnreadableError, as_read, init_failure
from components.openpai.protocol import runtime_text, with_secrets
from localcloud.hosts.assignment import CannotStartError
from localcloud.hosts.openpai.exits import InitError
from localcloud.openpai.tasks import ABSENT_PLUGINS, TaskAttempt

_PLUGINS = "com.microsoft.pai.runtimeplugin"
_RUNS_COMMANDS = "cmd"
# What a prerequisite has beside its plugin's parameters.
_OF_PREREQUISITES = ("plugin", "failurePolicy", "type")
# The user's script begins so, too: a variable that is not set ends it.
_STRICT = "set -o errexit\nset -o nounset\nset -o pipefail\n"
_MUST_SUCCEED = "code=$?\n[ $code -eq 0 ] || exit $code\n"


@dataclass(frozen=True)
class TaskScripts:
    """Texts for bash; the ones around the command may be empty."""

    before: str
    command: str
    after: str


@dataclass(frozen=True)
class _Plugin:
    name: str
    parameters: Mapping[str, Any]
    ignores: bool

    def commands(self, event: str, key: str) -> list[str]:
        """Those for `taskStarts` or `taskSucceeds`, or of the older key."""
        callbacks = self.parameters.get("callbacks")
        if callbacks is None:
            return [str(each) for each in self.parameters.get(key) or ()]
        return [str(each) for one in callbacks if one.get("event") == event for each in one.get("commands") or ()]


def scripts_of(attempt: TaskAttempt) -> TaskScripts:
    """Commands before the user's in the plugins' order, those after it the other way round."""
    plugins = [_read(attempt, each) for each in _plugins(attempt.protocol, attempt.role)]
    for plugin in plugins:
        if plugin.name not in (_RUNS_COMMANDS, *ABSENT_PLUGINS):
            raise CannotStartError(f"OpenPAI's runtime has no plugin {plugin.name!a}")
    before = [_script(attempt, each, each.commands("taskStarts", "preCommands")) for each in plugins]
    here = [each for each in plugins if each.name not in ABSENT_PLUGINS]
    after = [_script(attempt, each, each.commands("taskSucceeds", "postCommands")) for each in reversed(here)]
    command = _STRICT + with_secrets(attempt.command, attempt.protocol.get("secrets"))
    return TaskScripts("".join(before), f"{command}\n", "".join(after))


def _read(attempt: TaskAttempt, plugin: _Plugin) -> _Plugin:
    """The plugin with its parameters as the runtime reads them: with what it does to quotes, backslashes and lines."""
    shown = runtime_text(attempt.protocol, attempt.role, str(plugin.parameters))
    try:
        return replace(plugin, parameters=as_read(shown))
    except UnreadableError as error:
        reason = f"OpenPAI's runtime cannot read the parameters of the plugin {plugin.name!a}: {error}"
        raise InitError(init_failure("plugins"), reason) from None


def _script(attempt: TaskAttempt, plugin: _Plugin, commands: Sequence[str]) -> str:
    """One plugin's commands in a shell of their own. What they set is gone after it."""
    if plugin.name in ABSENT_PLUGINS:
        return f"echo 'the local cluster has no plugin {plugin.name}: it is left out'\n"
    if not commands:
        return ""
    lines = "\n".join(commands)
    if plugin.ignores:
        return f"(\n{lines}\n)\n"
    return f"(\nset -o errexit\n{lines}\n)\n{_MUST_SUCCEED}"


def _plugins(job: Mapping[str, Any], role: str) -> Iterator[_Plugin]:
    """Those of the role's prerequisites, then those of the job's extras."""
    rows = {row["name"]: row for row in job.get("prerequisites") or ()}
    for name in job["taskRoles"][role].get("prerequisites") or ():
        row = rows.get(name, {})
        kind, _, plugin = str(row.get("plugin", "")).rpartition(".")
        if kind == _PLUGINS:
            own = {key: value for key, value in row.items() if key not in _OF_PREREQUISITES}
            yield _Plugin(plugin, own, _ignores(row))
    for row in (job.get("extras") or {}).get(_PLUGINS) or ():
        if role in row.get("taskroles", (role,)):
            yield _Plugin(str(row["plugin"]), row.get("parameters") or {}, _ignores(row))


def _ignores(row: Mapping[str, Any]) -> bool:
    return str(row.get("failurePolicy", "fail")).lower() == "ignore"
