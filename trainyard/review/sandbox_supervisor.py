# SPDX-License-Identifier: Apache-2.0
"""The process between a review and the sandbox of a program (sandbox.py): makes the sandbox, and supervises it.

It starts anew, with the program's variables, so it holds nothing of whoever started it.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from localcloud.hosts import kernel, limits
from localcloud.hosts.child_process import UnstartableError
from localcloud.hosts.node import has_ended, start_isolated
from trainyard.review.sandbox import READY

_SIGNALS = (signal.SIGTERM, signal.SIGCHLD)
# From here on the kernel counts the processes of a user namespace apart from the others of the account.
_COUNTS_APART = (5, 14)


def main(arguments: list[str]) -> int:
    """Supervises one sandbox: its specification as JSON, and the open file for why there is none."""
    spec: dict[str, Any] = json.loads(arguments[0])
    status, parent = int(arguments[1]), os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    sandbox, most = spec["sandbox"], spec["sandbox"]["limits"]
    groups = limits.make_cloud_group({"memory": most["memory"], "pids": most["processes"]})
    try:
        if groups:
            sandbox |= {"groups": groups.child("program").folders, "version": groups.version}
        sandbox["filtered"] = kernel.has_filters()
        _enter_own_namespaces(most["processes"])
        kernel.end_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            return 1
        os.set_inheritable(status, False)
        node = start_isolated(spec)
        os.write(status, READY)
        reason = ""
        while not reason and not has_ended(node.pid):
            reason = node.watch.check()
            caught = signal.sigtimedwait(_SIGNALS, node.watch.pause)
            if caught and caught.si_signo == signal.SIGTERM:
                break
        node.kill()
        _, more = node.exit_code()
        if reason or more:
            sys.stderr.write(f"it was ended: {reason or more}\n")
    except (OSError, UnstartableError) as error:
        os.write(status, (str(error) or "its sandbox cannot be made").encode(errors="replace"))
        return 1
    finally:
        if groups:
            groups.remove()
    return 0


def _enter_own_namespaces(processes: int) -> None:
    """The user in it is the same account, with rights inside only, until the program has none."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        with suppress(PermissionError):
            os.setgroups([])
    kernel.unshare_namespaces(kernel.NEW_USER | kernel.NEW_NETWORK | kernel.NEW_PROCESSES)
    for name, content in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(content)
    if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= _COUNTS_APART:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
