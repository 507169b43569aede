# SPDX-License-Identifier: Apache-2.0
"""The hosts' side of a site: a process that holds the namespaces of one network, and answers requests."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcloud.hosts import child_process

_ANSWER_SECONDS = 120.0


class SiteError(Exception):
    """The site cannot do something. The text is for people."""


class SiteGoneError(SiteError):
    """The site ended or does not answer. Unlike other errors, this does not mean that the machine lacks something."""


@dataclass(frozen=True)
class SiteTask:
    """A program with its input, to run in a namespace (None: the site's own)."""

    command: Sequence[str]
    input: str
    namespace: int | None = None


@dataclass(frozen=True)
class Namespace:
    """A node's network namespace: its number in the site's process, and its open file here."""

    number: int
    file: int


class Site:
    """A process with its own user and network namespaces. Call `Site()` in the main thread, because the process ends
    with the thread that started it. The methods may be called from any thread."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._control = ours
        self._control.settimeout(_ANSWER_SECONDS)
        self._lock = threading.Lock()
        self.user = self.network = -1
        with theirs:
            self._process = subprocess.Popen(
                child_process.module_command("localcloud.hosts.namespaces", str(theirs.fileno()), str(os.getpid())),
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def prepare(self) -> None:
        """Makes the process root in a user namespace of its own."""
        self._answer()
        try:
            _map_users(self.pid)
        except OSError as error:
            raise SiteError(f"its user could not be mapped: {error}") from None
        child_process.send_message(self._control, {})
        self.user, self.network = self._answer()[1]

    def open(self, count: int) -> list[Namespace]:
        namespaces: list[Namespace] = []
        while count:  # a message can only contain a limited number of files
            some = min(count, child_process.MAXIMUM_FILES)
            answer, files = self._ask("open", count=some)
            namespaces += [Namespace(number, file) for number, file in zip(answer["namespaces"], files, strict=True)]
            count -= some
        return namespaces

    def run(self, tasks: Sequence[SiteTask]) -> list[str]:
        """Runs programs and returns their outputs. SiteError has the output of the first that failed."""
        requests = [{"command": list(task.command), "input": task.input, "namespace": task.namespace} for task in tasks]
        results = self._ask("run", tasks=requests)[0]["results"]
        for task, result in zip(tasks, results, strict=True):
            if result["code"] != 0:
                reason = result["output"].strip() or f"code {result['code']}"
                raise SiteError(f"{Path(task.command[0]).name}: {' '.join(reason.split())[:300]}")
        return [str(result["output"]) for result in results]

    def listen(self, address: str, port: int, namespace: int | None = None) -> socket.socket:
        """A socket that listens inside the site, or in a node's namespace. This process serves it."""
        answer = self._ask("listen", address=address, port=port, namespace=namespace)
        return socket.socket(fileno=answer[1][0])

    def release(self, namespaces: Sequence[Namespace]) -> None:
        for namespace in namespaces:
            os.close(namespace.file)
        self._ask("close", namespaces=[namespace.number for namespace in namespaces])

    def close(self) -> None:
        """Ends the process. Its namespaces end after the last node inside."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        for file in (self.user, self.network):
            if file >= 0:
                os.close(file)
        self.user = self.network = -1

    def _ask(self, verb: str, **details: Any) -> tuple[Any, list[int]]:
        with self._lock:
            try:
                child_process.send_message(self._control, {"verb": verb, **details})
            except OSError as error:
                raise SiteGoneError(f"its process is gone: {error}") from None
            return self._answer()

    def _answer(self) -> tuple[Any, list[int]]:
        try:
            answer, files = child_process.receive_message(self._control)
        except TimeoutError:
            self._process.kill()  # otherwise a late answer could be taken for that to the next request
            raise SiteGoneError(f"its process did not answer within {_ANSWER_SECONDS:.0f} seconds") from None
        except (EOFError, OSError):
            raise SiteGoneError("its process is gone") from None
        if "error" in answer:
            raise SiteError(answer["error"])
        return answer, files


@dataclass
class LoopbackSite:
    """A site whose nodes share one namespace. Each node has an address of its loopback."""

    site: Site
    _ending: Callable[[], None]

    @classmethod
    async def start(
        cls, endpoint: str, serve: Callable[[socket.socket], Awaitable[Callable[[], None]]]
    ) -> LoopbackSite:
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


def _map_users(pid: int) -> None:
    """Makes this account root inside. If it is root outside, maps all users, if that is allowed."""
    process = Path(f"/proc/{pid}")
    if os.geteuid() == 0:
        with suppress(PermissionError):
            for name in ("uid_map", "gid_map"):
                lines = [line.split() for line in Path(f"/proc/self/{name}").read_text().splitlines()]
                (process / name).write_text("\n".join(f"{inside} {inside} {count}" for inside, _, count in lines))
            return
    (process / "setgroups").write_text("deny")
    (process / "uid_map").write_text(f"0 {os.geteuid()} 1")
    (process / "gid_map").write_text(f"0 {os.getegid()} 1")
