# SPDX-License-Identifier: Apache-2.0
"""A node as its supervisor sees it: in namespaces of its own, or bare.

A bare node is an ordinary process of this user, for machines that do not allow namespaces.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.hosts import first_process, kernel
from localcloud.hosts.child_process import UnstartableError, raise_if_unstartable, read_messages
from localcloud.hosts.limits import ControlGroups
from localcloud.hosts.usage_watch import UsageWatch

# How long the first process may take to end all others, and to report how the command ended.
_LAST_SECONDS = 10.0
_CLEARED_SECONDS = 60.0
_OUT_OF_MEMORY = "the kernel ended {} of its processes because the node used all its memory, {:.1f} GiB"
_POLL_SECONDS = 0.02


def has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def ends_within(pid: int, seconds: float) -> bool:
    """Whether the process ended within this time. SIGCHLD must be blocked, so that no signal is missed."""
    deadline = time.monotonic() + seconds
    while not has_ended(pid):
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        signal.sigtimedwait((signal.SIGCHLD,), left)
    return True


@dataclass
class IsolatedNode:
    """The processes of a node in namespaces of its own. `pid`: its first process, with which all others end."""

    pid: int
    watch: UsageWatch
    _report: Iterator[dict[str, Any]]
    _groups: ControlGroups | None

    def terminate(self) -> None:
        self._signal(first_process.TERMINATE)

    def kill(self) -> None:
        """Ends all processes of the node. If they do not end by themselves, it kills the first one."""
        self._signal(first_process.KILL)
        if not ends_within(self.pid, _LAST_SECONDS):
            self._signal(signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def exit_code(self) -> tuple[int | None, str]:
        """The command's exit code, and an explanation if there is one."""
        killed = 0
        if self._groups:
            killed = self._groups.killed_for_memory()
            self._groups.remove()
        messages = list(self._report)
        raise_if_unstartable(messages)
        code = next((message["code"] for message in messages if "code" in message), -signal.SIGKILL)
        return code, _OUT_OF_MEMORY.format(killed, self.watch.limits["memory"] / (1 << 30)) if killed else ""

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def enter_namespaces(place: dict[str, Any]) -> str:
    """Moves this process into the node's namespaces, given as open files. Returns the error, or ""."""
    try:
        kernel.enter_namespace(place["user"], kernel.NEW_USER)
        kernel.enter_namespace(place["network"], kernel.NEW_NETWORK)
        kernel.unshare_namespaces(kernel.NEW_PROCESSES)
    except OSError as error:
        return f"its namespaces: {error}"
    for file in (place["user"], place["network"]):
        os.close(file)
    return ""


def start_isolated(spec: dict[str, Any]) -> IsolatedNode:
    gate, report = os.pipe(), os.pipe()
    sandbox = spec["sandbox"]
    groups = ControlGroups(sandbox["groups"], sandbox["version"]) if sandbox["groups"] else None
    if groups:
        groups.make({"memory": sandbox["limits"]["memory"], "pids": sandbox["limits"]["processes"]})
    pid = os.fork()
    if pid == 0:
        os.close(gate[1])
        os.close(report[0])
        first_process.main(spec, gate[0], report[1])
    os.close(gate[0])
    os.close(report[1])
    messages = read_messages(report[0])
    watch = UsageWatch(
        pid, [source for source, _ in sandbox["own"]], sandbox["limits"], bool(groups), sandbox["printed"],
        [source for source, _, writable in sandbox["folders"] if writable],
    )  # fmt: skip
    node = IsolatedNode(pid, watch, messages, groups)
    try:
        message = next(messages, {"error": "its first process ended before it could begin"})
        if "error" in message:
            raise UnstartableError(message["error"])
        if groups:
            (command,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            groups.join(int(command))
        os.write(gate[1], b"g")
    except (OSError, UnstartableError):
        node.kill()
        if groups:
            groups.remove()
        raise
    finally:
        os.close(gate[1])
    return node


def remove_cloud_group(spec: dict[str, Any]) -> None:
    """Removes the control groups of a cloud that was killed, unless other nodes still use them."""
    if spec.get("namespaces") and spec["sandbox"]["groups"]:
        # This may take long: a busy kernel keeps a group for seconds after its last process. Nobody waits for this.
        groups = ControlGroups(spec["sandbox"]["groups"], spec["sandbox"]["version"])
        # The node's own group first: while it is there, so is the one around it, and the last node has to remove that.
        groups.remove(_CLEARED_SECONDS)
        groups.parent().remove(_CLEARED_SECONDS)


@dataclass
class BareNode:
    """The processes of a bare node. `pid`: the command itself."""

    process: subprocess.Popen[bytes]
    report: int | None = None
    watch: None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Ends all processes that the command started. This process has adopted the command's orphans."""
        while children := _child_pids():
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.wait()
            _reap_adopted()

    def exit_code(self) -> tuple[int | None, str]:
        if self.report is not None:
            raise_if_unstartable(read_messages(self.report))
        return self.process.returncode, ""


def protect_kernel_settings() -> None:
    """Makes /proc/sys read-only. Launchers write there to pin ports, and would change this machine if they are root."""
    if os.geteuid() == 0:
        with suppress(OSError):  # if we may not mount, as in containers, /proc/sys is read-only anyway
            kernel.separate_mounts()
            kernel.make_read_only("/proc/sys")


def start_bare(spec: dict[str, Any]) -> BareNode:
    reports = spec.get("reports")
    report = os.pipe() if reports else None
    more = {reports: str(report[1])} if report else {}
    process = subprocess.Popen(
        spec["command"], cwd=spec["folder"], env={**spec["environment"], **more}, stdin=subprocess.DEVNULL,
        start_new_session=True, preexec_fn=_prepare_command_process, pass_fds=report[1:] if report else (),
    )  # fmt: skip
    if report is None:
        return BareNode(process)
    os.close(report[1])
    return BareNode(process, report[0])


def _prepare_command_process() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kernel.end_with_parent(signal.SIGKILL)


def _reap_adopted() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(_POLL_SECONDS)
                return
        except ChildProcessError:
            return


def _child_pids() -> list[int]:
    """Children of this process that have not been waited for, adopted ones included."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split()]
