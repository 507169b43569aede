# SPDX-License-Identifier: Apache-2.0
"""An attempt of a task as an assignment: one node in the network that all hosts of the cluster share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path, PurePosixPath

from catalog.openpai import local_grace
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
)
from localcloud.hosts.openpai import images, runtime
from localcloud.hosts.openpai.scripts import scripts_of
from localcloud.hosts.rules import Direction, FirewallRule
from localcloud.hosts.workplace import GIVEN
from localcloud.openpai.tasks import CLUSTER_NETWORK, CLUSTER_ROUTER, TaskAttempt, TaskStorage

ALONE = Outline((Group("", 1, 1),), 0)
# Tasks share storages, and with them the user whose files lie there: in a cluster that is root.
_USER = "openpai"
_MEBIBYTE = 1 << 20
_ANYBODY = "0.0.0.0/0"
# A folder of the job's choice cannot hide these from the task.
_SYSTEM = ("/", "/dev", "/proc", "/sys")
_START = f"import os, runpy; runpy.run_path(os.environ[{runtime.PLACE!r}] + '/runtime.py', run_name='__main__')"
_RUNTIME = "runtime.py"
Lines = Callable[[Sequence[bytes]], None]


def assignment_of(attempt: TaskAttempt, folder: Path, lines: Lines) -> Assignment:
    _write_scripts(attempt, folder / GIVEN)
    block = IPv4Network(CLUSTER_NETWORK)
    subnet = Subnet("cluster", "cluster", CLUSTER_ROUTER, hardware(CLUSTER_ROUTER), block.prefixlen)
    return Assignment(
        id=attempt.id,
        name=f"{attempt.role}-{attempt.index}",
        folder=folder,
        outline=ALONE,
        works=[_work(attempt)],
        code=None,
        mounts=(),
        subnet=subnet,
        interfaces=[Interface(attempt.id, attempt.address, hardware(attempt.address), lambda: _REACH)],
        lines=lambda group, rank: lines,
        upkeep=_nothing,
        shared=_all_shared(attempt.storages),
        user=_USER,
    )


def hardware(address: str) -> str:
    """A hardware address for an address, always the same."""
    return "02:" + ":".join(f"{byte:02x}" for byte in hashlib.sha256(address.encode()).digest()[:5])


async def _nothing() -> None:
    """Nothing that a task is given expires."""


def _rule(direction: Direction) -> FirewallRule:
    everyone = (IPv4Network(_ANYBODY),)
    return FirewallRule("", direction, 0, None, _ANYBODY, everyone, key=f"open_{direction}", implied=True)


# Nothing is closed between hosts of a cluster.
_REACH = NetworkReach((_rule("ingress"), _rule("egress")), ())


def _work(attempt: TaskAttempt) -> NodeWork:
    def environment(endpoints: Sequence[str], given: str) -> Mapping[str, str]:
        return {**attempt.environment, runtime.PLACE: given, runtime.GRACE: str(local_grace())}

    command = ("python", "-I", "-S", "-c", _START)
    stands_in, memory = images.stand_in_name(attempt), attempt.memory_mb * _MEBIBYTE
    return NodeWork(command, (), "", environment, stands_in, attempt.image.uri, memory, 0)


def _write_scripts(attempt: TaskAttempt, given: Path) -> None:
    scripts = scripts_of(attempt)
    texts = {runtime.BEFORE: scripts.before, runtime.COMMAND: scripts.command, runtime.AFTER: scripts.after}
    given.mkdir(parents=True, exist_ok=True)
    for name, text in {_RUNTIME: Path(runtime.__file__).read_text(), **texts}.items():
        if text:
            (given / name).write_text(text)
            (given / name).chmod(0o644)


def _all_shared(storages: Sequence[TaskStorage]) -> list[SharedFolder]:
    """None lies in another: tasks that write there could lead its path elsewhere."""
    shared = [_shared(each) for each in storages]
    for storage, inner in zip(storages, shared, strict=True):
        if any(PurePosixPath(inner.target).is_relative_to(outer.target) for outer in shared if outer is not inner):
            raise _wrong_mount(storage)
    return shared


def _wrong_mount(storage: TaskStorage) -> CannotStartError:
    return CannotStartError(f"The storage {storage.name} cannot be shown at {storage.mount!a}: choose another path")


def _shared(storage: TaskStorage) -> SharedFolder:
    target = PurePosixPath("/" + storage.mount.lstrip("/"))  # two slashes would begin another root
    if ".." in target.parts or str(target) in _SYSTEM or any(target.is_relative_to(each) for each in _SYSTEM[1:]):
        raise _wrong_mount(storage)
    return SharedFolder(str(target), storage.folder, storage.read_only)
