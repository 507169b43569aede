# SPDX-License-Identifier: Apache-2.0
"""A node without namespaces, for machines that do not allow them: an ordinary process of this user."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlsplit

from localcloud.hosts import kernel
from localcloud.hosts.site import Site
from localcloud.hosts.start_messages import raise_if_unstartable, read_messages

_POLL_SECONDS = 0.02


@dataclass
class BareNode:
    """The processes of such a node. `pid`: the command itself."""

    process: subprocess.Popen[bytes]
    report: int | None = None
    watch: None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)

    def end(self) -> None:
        """Ends all processes that the command started. This process has adopted the command's orphans."""
        while children := _children():
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.wait()
            _reap()

    def ended(self) -> tuple[int | None, str]:
        if self.report is not None:
            raise_if_unstartable(read_messages(self.report))
        return self.process.returncode, ""


def enter() -> str:
    """Makes /proc/sys read-only. Launchers write there to pin ports, and would change this machine if they are root."""
    if os.geteuid() == 0:
        with suppress(OSError):  # if we may not mount, as in containers, /proc/sys is read-only anyway
            kernel.separate_mounts()
            kernel.make_read_only("/proc/sys")
    return ""


def start(spec: dict[str, Any]) -> BareNode:
    reports = spec.get("reports")
    report = os.pipe() if reports else None
    more = {reports: str(report[1])} if report else {}
    process = subprocess.Popen(
        spec["command"], cwd=spec["folder"], env={**spec["environment"], **more}, stdin=subprocess.DEVNULL,
        start_new_session=True, preexec_fn=_before_the_command, pass_fds=report[1:] if report else (),
    )  # fmt: skip
    if report is None:
        return BareNode(process)
    os.close(report[1])
    return BareNode(process, report[0])


def _before_the_command() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kernel.end_with_parent(signal.SIGKILL)


def _reap() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(_POLL_SECONDS)
                return
        except ChildProcessError:
            return


def _children() -> list[int]:
    """Children of this process that have not been waited for, adopted ones included."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split()]


@dataclass
class LoopbackSite:
    """A site whose nodes share one namespace. Each node has an address of its loopback."""

    site: Site
    _ending: Callable[[], None]

    @classmethod
    async def start(cls, endpoint: str, serve: Callable[[socket], Awaitable[Callable[[], None]]]) -> LoopbackSite:
        """Starts a site in which this cloud answers at the same address as outside."""
        address = urlsplit(endpoint)
        site = Site()
        try:
            await asyncio.to_thread(site.prepare)
            listener = await asyncio.to_thread(site.listen, str(address.hostname), address.port or 80)
            return cls(site, await serve(listener))
        except BaseException:
            site.close()
            raise

    def close(self) -> None:
        self._ending()
        self.site.close()
