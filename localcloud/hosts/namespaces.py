# SPDX-License-Identifier: Apache-2.0
"""The process of a site. It keeps network namespaces open, and runs programs in them for the hosts.

Its namespaces have no names, so they end with this process and the nodes inside. It always ends with the hosts.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from localcloud.hosts import child_process, kernel

_OWN = "/proc/self/ns/net"
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
_BACKLOG = 512
_FITS = b"it fits"
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_REFUSED = "the system refuses namespaces to this account; docs/local-cloud.md says how to allow them"
Answer = tuple[Any, list[int]]


def main(arguments: list[str]) -> int:
    kernel.end_with_parent(signal.SIGKILL)
    if os.getppid() != int(arguments[1]):
        return 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the hosts handle Ctrl-C, and then close this process
    control = socket.socket(fileno=int(arguments[0]))
    try:
        kernel.unshare_namespaces(kernel.NEW_USER | kernel.NEW_NETWORK)
        child_process.send_message(control, {})
        child_process.receive_message(control)  # the hosts have mapped this user now: it is root inside
        _FORWARD.write_text("1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            up = struct.pack("16sh14x", b"lo", _IFF_UP)
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, up)
        _try_own_proc()
        child_process.send_message(control, {}, [os.open(path, os.O_RDONLY) for path in ("/proc/self/ns/user", _OWN)])
    except OSError as error:
        child_process.send_message(control, {"error": f"{_REFUSED} ({error})"})
        return 1
    verbs: Mapping[str, Callable[..., Answer]] = {
        "open": _open_namespaces,
        "run": _run_tasks,
        "listen": _listen_in_namespace,
        "close": _close_namespaces,
    }
    while True:
        try:
            request, _ = child_process.receive_message(control)
        except EOFError:
            return 0
        lent: list[int] = []
        try:
            answer, lent = verbs[request.pop("verb")](**request)
        except (OSError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        child_process.send_message(control, answer, lent)
        if isinstance(answer, dict) and answer.get("handed over"):
            for file in lent:
                os.close(file)


def _try_own_proc() -> None:
    """Raises OSError if a node cannot mount its own `/proc`, as in containers that hide a part of it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            kernel.unshare_namespaces(kernel.NEW_PROCESSES)
            if os.fork() == 0:
                kernel.separate_mounts()
                kernel.mount_kernel_files("proc", "/proc")
                kernel.mount_kernel_files("sysfs", "/sys", flags=kernel.READ_ONLY)
                os.write(writer, _FITS)
        except OSError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        outcome = file.read()
    os.wait()
    if outcome != _FITS:
        raise OSError(outcome.decode(errors="replace") or "a node cannot have processes of its own")


def _open_namespaces(count: int) -> Answer:
    """Makes namespaces. Requests identify each one by the number of its open file here."""
    own = os.open(_OWN, os.O_RDONLY)
    opened: list[int] = []
    try:
        for _ in range(count):
            kernel.unshare_namespaces(kernel.NEW_NETWORK)
            opened.append(os.open(_OWN, os.O_RDONLY))
    finally:
        kernel.enter_namespace(own, kernel.NEW_NETWORK)
        os.close(own)
    return {"namespaces": opened}, opened


def _listen_in_namespace(address: str, port: int, namespace: int | None) -> Answer:
    """Makes a socket that listens in a namespace, or in the site's own."""
    own = os.open(_OWN, os.O_RDONLY)
    try:
        if namespace is not None:
            kernel.enter_namespace(namespace, kernel.NEW_NETWORK)
        listener = socket.create_server((address, port), backlog=_BACKLOG)
    finally:
        kernel.enter_namespace(own, kernel.NEW_NETWORK)
        os.close(own)
    return {"handed over": True}, [listener.detach()]


def _close_namespaces(namespaces: list[int]) -> Answer:
    for namespace in namespaces:
        os.close(namespace)
    return {}, []


def _run_tasks(tasks: list[dict[str, Any]]) -> Answer:
    """Runs programs in namespaces, as many at once as there are processors. They do not depend on each other."""
    results: list[dict[str, Any]] = []
    at_once = os.cpu_count() or 1
    for first in range(0, len(tasks), at_once):
        started = [_start_task(task) for task in tasks[first : first + at_once]]
        for process, output in started:
            process.wait()
            results.append({"code": process.returncode, "output": _read_output(output)})
    return {"results": results}, []


def _start_task(task: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int]:
    # Files in memory, because pipes would have to be fed and read meanwhile.
    given, output = os.memfd_create("input"), os.memfd_create("output")
    os.write(given, task["input"].encode())
    os.lseek(given, 0, os.SEEK_SET)
    namespace = task.get("namespace")
    enter = None if namespace is None else lambda: kernel.enter_namespace(namespace, kernel.NEW_NETWORK)
    try:
        process = subprocess.Popen(
            task["command"], stdin=given, stdout=output, stderr=output, preexec_fn=enter, env={"LC_ALL": "C"}
        )
    except BaseException:
        os.close(output)
        raise
    finally:
        os.close(given)
    return process, output


def _read_output(file: int) -> str:
    with os.fdopen(file, "rb") as opened:
        opened.seek(0)
        return opened.read().decode(errors="replace")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
