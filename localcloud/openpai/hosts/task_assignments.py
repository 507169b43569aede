# SPDX-License-Identifier: Apache-2.0
"""Makes an assignment from a task attempt: one node in the network that all hosts of the cluster share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path, PurePosixPath
from typing import Any

from catalog.openpai import UnreadableError, init_failure, local_grace_seconds, parameters_as_read
from components.openpai.protocol import TemplateError, runtime_text, with_secrets
from components.values.security_rules import Direction
from localcloud.hosts.assignment import (
    Assignment,
    CannotStartError,
    Group,
    Interface,
    NetworkReach,
    NodeWork,
    Outline,
    SharedFolder,
    Subnet,
    hardware_address,
)
from localcloud.hosts.firewall import FirewallRule
from localcloud.hosts.node_setup import GIVEN
from localcloud.openpai.hosts import runtime, stand_ins
from localcloud.openpai.hosts.stand_ins import InitError
from localcloud.openpai.tasks import ABSENT_PLUGINS, CLUSTER_NETWORK, CLUSTER_ROUTER, TaskAttempt, TaskStorage

_PLUGINS = "com.microsoft.pai.runtimeplugin"
_RUNS_COMMANDS = "cmd"
# The keys of a prerequisite that are not parameters of its plugin.
_OF_PREREQUISITES = ("plugin", "failurePolicy", "type")
# The beginning of each script, as in OpenPAI: an unset variable ends the script.
_STRICT = "set -o errexit\nset -o nounset\nset -o pipefail\n"
_MUST_SUCCEED = "code=$?\n[ $code -eq 0 ] || exit $code\n"
_ONE_NODE = Outline((Group("", 1, 1),), 0)
# The user of all tasks, because they share storages. In a real cluster it is root.
_USER = "openpai"
_MEBIBYTE = 1 << 20
_ANYBODY = "0.0.0.0/0"
# Paths at which a job cannot mount a storage.
_SYSTEM = ("/", "/dev", "/proc", "/sys")
_START = f"import os, runpy; runpy.run_path(os.environ[{runtime.PLACE!r}] + '/runtime.py', run_name='__main__')"
_RUNTIME = "runtime.py"
Lines = Callable[[Sequence[bytes]], None]


@dataclass(frozen=True)
class TaskScripts:
    """A task's scripts for bash. Those before and after the command may be empty."""

    before: str
    command: str
    after: str


@dataclass(frozen=True)
class _Plugin:
    name: str
    parameters: Mapping[str, Any]
    ignores: bool

    def commands(self, event: str, key: str) -> list[str]:
        """The commands for `taskStarts` or `taskSucceeds`, or under the older key."""
        callbacks = self.parameters.get("callbacks")
        if callbacks is None:
            return [str(each) for each in self.parameters.get(key) or ()]
        return [str(each) for one in callbacks if one.get("event") == event for each in one.get("commands") or ()]


def task_scripts(attempt: TaskAttempt) -> TaskScripts:
    """The scripts of a task. Plugins' commands before the user's keep their order; those after it are reversed."""
    plugins = [_substitute_parameters(attempt, each) for each in _role_plugins(attempt.protocol, attempt.role)]
    for plugin in plugins:
        if plugin.name not in (_RUNS_COMMANDS, *ABSENT_PLUGINS):
            raise InitError(init_failure("plugins"), f"OpenPAI's runtime has no plugin {plugin.name!a}")
    before = [_plugin_script(attempt, each, each.commands("taskStarts", "preCommands")) for each in plugins]
    here = [each for each in plugins if each.name not in ABSENT_PLUGINS]
    after = [_plugin_script(attempt, each, each.commands("taskSucceeds", "postCommands")) for each in reversed(here)]
    try:
        command = _STRICT + with_secrets(attempt.command, attempt.protocol.get("secrets"))
    except TemplateError as error:
        raise CannotStartError(f"The local cluster cannot fill secrets into the command: {error}") from None
    return TaskScripts("".join(before), f"{command}\n", "".join(after))


def _substitute_parameters(attempt: TaskAttempt, plugin: _Plugin) -> _Plugin:
    """The plugin with its parameters as OpenPAI's runtime reads them, with its handling of quotes and backslashes."""
    shown = runtime_text(attempt.protocol, attempt.role, str(plugin.parameters))
    try:
        return replace(plugin, parameters=parameters_as_read(shown))
    except UnreadableError as error:
        reason = f"OpenPAI's runtime cannot read the parameters of the plugin {plugin.name!a}: {error}"
        raise InitError(init_failure("plugins"), reason) from None


def _plugin_script(attempt: TaskAttempt, plugin: _Plugin, commands: Sequence[str]) -> str:
    """A plugin's commands in a subshell, so that variables which they set are lost."""
    if plugin.name in ABSENT_PLUGINS:
        return f"echo 'the local cluster has no plugin {plugin.name}: it is left out'\n"
    if not commands:
        return ""
    lines = "\n".join(commands)
    if plugin.ignores:
        return f"(\n{lines}\n)\n"
    return f"(\nset -o errexit\n{lines}\n)\n{_MUST_SUCCEED}"


def _role_plugins(job: Mapping[str, Any], role: str) -> Iterator[_Plugin]:
    """The plugins of the role's prerequisites, then those in the job's extras."""
    rows = {row["name"]: row for row in job.get("prerequisites") or ()}
    for name in job["taskRoles"][role].get("prerequisites") or ():
        row = rows.get(name, {})
        kind, _, plugin = str(row.get("plugin", "")).rpartition(".")
        if kind == _PLUGINS:
            own = {key: value for key, value in row.items() if key not in _OF_PREREQUISITES}
            yield _Plugin(plugin, own, _ignores_failure(row))
    for row in (job.get("extras") or {}).get(_PLUGINS) or ():
        if role in row.get("taskroles", (role,)):
            yield _Plugin(str(row["plugin"]), row.get("parameters") or {}, _ignores_failure(row))


def _ignores_failure(row: Mapping[str, Any]) -> bool:
    return str(row.get("failurePolicy", "fail")).lower() == "ignore"


def build_task_assignment(attempt: TaskAttempt, folder: Path, lines: Lines) -> Assignment:
    given = folder / GIVEN
    scripts = task_scripts(attempt)
    texts = {runtime.BEFORE: scripts.before, runtime.COMMAND: scripts.command, runtime.AFTER: scripts.after}
    given.mkdir(parents=True, exist_ok=True)
    for name, text in {_RUNTIME: Path(runtime.__file__).read_text(), **texts}.items():
        if text:
            (given / name).write_text(text)
            (given / name).chmod(0o644)
    block = IPv4Network(CLUSTER_NETWORK)
    subnet = Subnet("cluster", "cluster", CLUSTER_ROUTER, hardware_address(CLUSTER_ROUTER), block.prefixlen)
    # One shared folder may not be inside of another, because tasks could put links into its path.
    shared = []
    for storage in attempt.storages:
        target = PurePosixPath("/" + storage.mount.lstrip("/"))  # two slashes are special in POSIX
        if ".." in target.parts or str(target) in _SYSTEM or any(target.is_relative_to(each) for each in _SYSTEM[1:]):
            raise _wrong_mount_error(storage)
        shared.append(SharedFolder(str(target), storage.folder, storage.read_only))
    for storage, inner in zip(attempt.storages, shared, strict=True):
        if any(PurePosixPath(inner.target).is_relative_to(outer.target) for outer in shared if outer is not inner):
            raise _wrong_mount_error(storage)
    return Assignment(
        id=attempt.id,
        name=f"{attempt.role}-{attempt.index}",
        folder=folder,
        outline=_ONE_NODE,
        works=[_task_work(attempt)],
        code=None,
        mounts=(),
        subnet=subnet,
        interfaces=[Interface(attempt.id, attempt.address, hardware_address(attempt.address), lambda: _REACH)],
        lines=lambda group, rank: lines,
        shared=shared,
        user=_USER,
    )


def _open_rule(direction: Direction) -> FirewallRule:
    everyone = (IPv4Network(_ANYBODY),)
    return FirewallRule(
        list="", index=0, direction=direction, peer=_ANYBODY, peers=everyone, key=f"open_{direction}", implied=True
    )


# All hosts of a cluster can reach each other.
_REACH = NetworkReach((_open_rule("ingress"), _open_rule("egress")), ())


def _task_work(attempt: TaskAttempt) -> NodeWork:
    def environment(endpoints: Sequence[str], given: str) -> Mapping[str, str]:
        return {**attempt.environment, runtime.PLACE: given, runtime.GRACE: str(local_grace_seconds())}

    command = ("python", "-I", "-S", "-c", _START)
    stands_in, memory = stand_ins.choose_stand_in(attempt), attempt.memory_mb * _MEBIBYTE
    return NodeWork(command, (), "", environment, stands_in, attempt.image.uri, memory, 0)


def _wrong_mount_error(storage: TaskStorage) -> CannotStartError:
    return CannotStartError(f"The storage {storage.name} cannot be shown at {storage.mount!a}: choose another path")
