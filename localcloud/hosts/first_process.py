# SPDX-License-Identifier: Apache-2.0
"""The first process of a node. It builds the node's file system and starts the command there without privileges. When
it ends, all other processes of the node end too.

It is a child of the node's supervisor, which has entered the node's user and network namespaces already. The command
can neither inspect this process nor end it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from localcloud.hosts import folders, kernel, syscall_filter, users
from localcloud.hosts.usage_watch import CONTINUE, STOP

TERMINATE, KILL = signal.SIGTERM, signal.SIGQUIT
_SIGNALS = (TERMINATE, KILL, STOP, CONTINUE, signal.SIGCHLD)
# What the first process sends to all others when it gets these. The kernel does it at once: no new process escapes.
_FOR_ALL: dict[int, int] = {KILL: signal.SIGKILL, STOP: signal.SIGSTOP}
_PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_OF_THE_ACCOUNT = 8  # a node gets this part of what the kernel counts for an account
_NO_CORE = 1  # with 0 a machine would still pipe core dumps to a program
# Python ignores these signals. Programs expect the system's default handling.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)

# The capabilities of a whole machine's root: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, SYS_CHROOT.
# They only affect files and processes of the machine's own users.
_OF_ROOT = (0, 1, 3, 4, 5, 6, 7, 18)


def main(spec: dict[str, Any], gate: int, report: int) -> NoReturn:
    """Runs the node and never returns: this process is a fork of the supervisor."""
    try:
        kernel.end_with_parent(signal.SIGKILL)
        kernel.allow_inspection(True)  # while users are mapped: that writes to files of these processes
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        sandbox = spec["sandbox"]
        os.umask(0o022)  # another user must be able to enter the folders that are made here
        kernel.unshare_namespaces(kernel.NEW_MOUNTS | kernel.NEW_HOSTNAME | kernel.NEW_IPC)
        socket.sethostname(sandbox["hostname"])
        if sandbox["ports"]:  # set here, because processes inside may not
            Path(_PORT_RANGE).write_text("{} {}".format(*sandbox["ports"]))
        user_settings = folders.build_file_system(sandbox)
        command = _start_in_sandbox(spec, user_settings, gate, report)
        os.close(user_settings)
        kernel.allow_inspection(False)
        _send_report(report, {"ready": True})
        _send_report(report, {"code": _wait_for_command(command)})
    except BaseException as error:
        _send_report(report, {"error": f"its sandbox on this machine cannot be made: {error}"})
    os._exit(0)


def _start_in_sandbox(spec: dict[str, Any], user_settings: int, gate: int, report: int) -> int:
    """Starts the command as a user without privileges. It waits at `gate` until the supervisor lets it begin."""
    entered, mapped = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _enter_user_namespace(spec["sandbox"], entered[1], mapped[0])
            if not os.read(gate, 1):
                os._exit(1)
            _give_up_rights(spec["sandbox"]["limits"], user_settings, _user_id(spec["sandbox"]))
            if spec["sandbox"]["filtered"]:  # last, because the steps before need some of the filtered calls
                syscall_filter.install_filter()
            os.chdir(spec["folder"])
            environment = dict(spec["environment"])
            if reports := spec.get("reports"):  # the command first unpacks an archive, which it may refuse
                os.set_inheritable(report, True)
                environment[reports] = str(report)
            os.execvpe(spec["command"][0], spec["command"], environment)
        except BaseException as error:
            _send_report(report, {"error": str(error)})
        os._exit(127)
    os.close(entered[1])
    if os.read(entered[0], 1):
        sandbox = spec["sandbox"]
        for name in ("uid_map", "gid_map"):
            Path(f"/proc/{pid}/{name}").write_text(f"{_user_id(sandbox)} {sandbox['user'] or 0} {sandbox['users']}")
        os.write(mapped[1], b"m")
    for file in (entered[0], *mapped, gate):
        os.close(file)
    return pid


def _user_id(sandbox: dict[str, Any]) -> int:
    """The user id of the command inside the node."""
    return 0 if sandbox["machine"] else users.ID_IN_NODE


def _enter_user_namespace(sandbox: dict[str, Any], entered: int, mapped: int) -> None:
    """Enters a user namespace of the command's own, in which the first process maps a user."""
    os.setsid()
    kernel.drop_keys()
    for output in (1, 2):  # programs may open their output again as /dev/stdout
        with suppress(OSError):
            os.fchown(output, sandbox["user"] or -1, -1)
    if sandbox["user"]:
        os.setgroups([])
    # The kernel counts these for all processes of an account. A namespace gets the limits of the process that makes it.
    for kind in (resource.RLIMIT_SIGPENDING, resource.RLIMIT_MSGQUEUE):
        _lower_limit(kind, resource.getrlimit(kind)[0] // _OF_THE_ACCOUNT)
    kernel.unshare_namespaces(kernel.NEW_USER)
    os.write(entered, b"a")
    if not os.read(mapped, 1):
        raise OSError("its user could not be mapped")


def _give_up_rights(limits: dict[str, int], user_settings: int, number: int) -> None:
    """Drops all capabilities for good, and becomes the run's user. The root of a whole machine keeps capabilities for
    its own users and files: its user namespace does not own mounts, networks or other processes."""
    kernel.unshare_namespaces(kernel.NEW_GROUPS)
    _write_user_setting(user_settings, "max_user_namespaces", "0")
    for name in ("max_inotify_instances", "max_inotify_watches"):
        if name in limits:
            _write_user_setting(user_settings, name, str(limits[name]))
    os.setresgid(number, number, number)
    os.setresuid(number, number, number)
    _lower_limit(resource.RLIMIT_NOFILE, limits["files"])
    _lower_limit(resource.RLIMIT_FSIZE, limits["disk"])
    _lower_limit(resource.RLIMIT_CORE, _NO_CORE)
    kernel.keep_capabilities(_OF_ROOT if number == 0 else ())
    kernel.forbid_new_privileges()
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _write_user_setting(folder: int, name: str, content: str) -> None:
    with open(name, "w", opener=lambda path, flags: os.open(path, flags & ~os.O_CREAT, dir_fd=folder)) as file:
        file.write(content)


def _lower_limit(kind: int, most: int) -> None:
    """Lowers a limit, unless it is lower already."""
    soft, hard = (most if old == resource.RLIM_INFINITY else min(most, old) for old in resource.getrlimit(kind))
    resource.setrlimit(kind, (soft, hard))


def _wait_for_command(command: int) -> int:
    """Waits for the command, ends all other processes of the node, and returns the command's exit code."""
    code: int | None = None
    stood: frozenset[int] | None = None  # the processes that stood still already when all were stopped
    while code is None:
        number = signal.sigwait(_SIGNALS)
        with suppress(ProcessLookupError):
            if number == TERMINATE:
                os.killpg(command, signal.SIGTERM)
            elif number == CONTINUE:
                for pid in _processes() - (stood or frozenset()):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
                stood = None
            elif number in _FOR_ALL:
                if number == STOP and stood is None:
                    stood = frozenset(filter(_stands_still, _processes()))
                os.kill(-1, _FOR_ALL[number])
        code = _reap_children(command)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:  # only processes that were waited for are included in the processor time
            os.waitpid(-1, 0)
    return code


def _processes() -> frozenset[int]:
    """All processes of the node but this one."""
    return frozenset(int(name) for name in os.listdir("/proc") if name.isdigit()) - {os.getpid()}


def _stands_still(pid: int) -> bool:
    """Whether somebody has stopped a process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _reap_children(command: int) -> int | None:
    code = None
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == command:
                code = os.waitstatus_to_exitcode(status)
    return code


def _send_report(report: int, message: dict[str, Any]) -> None:
    with suppress(OSError):
        os.write(report, json.dumps(message).encode() + b"\n")
