# SPDX-License-Identifier: Apache-2.0
"""The server process, one per folder. `localcloud.control` starts it: `python -m localcloud.serve HOME [PORT]`."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import json
import logging
import os
import re
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import uvicorn

from catalog.version import VERSION
from localcloud import files
from localcloud.code_age import PROJECT
from localcloud.console import console_page
from localcloud.control import ALREADY_RUNNING
from localcloud.hosts.fabric import Fabric
from localcloud.server.api_errors import explain_disk_error
from localcloud.server.app import Application
from localcloud.server.connections import DroppableConnection, raise_open_files, serve_another
from localcloud.server_part import MainServerPart, UnusableError, server_parts

UNUSABLE = 4
# The file with the port that a cloud used last.
LAST_PORT = "port"
_NOT_PRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HOME_CHECK_SECONDS = 2.0


class _OneLine(logging.Formatter):
    """Escapes control characters, so that a request can neither fake a log line nor command a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return _NOT_PRINTED.sub(lambda match: ascii(match[0])[1:-1], super().formatMessage(record))


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: uvicorn's own version would raise the signal again before the hosts have stopped."""
        yield


def main(arguments: list[str]) -> int:
    home = Path(arguments[0]).resolve()
    port = int(arguments[1]) if len(arguments) > 1 else 0
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chdir(home)
    raise_open_files()
    # The log does not use these fields, and computing them would take longer than writing the line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(_OneLine("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[output])
    with (home / "server.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(
                "another local cloud uses this folder and cannot be reached from here: it may run in another container."
                " Stop it where it was started",
                file=sys.stderr,
            )
            return ALREADY_RUNNING
        try:
            asyncio.run(_serve_cloud(home, port))
        except UnusableError as reason:
            print(reason, file=sys.stderr)
            return UNUSABLE
        except (OSError, sqlite3.DatabaseError) as error:
            if not (why := explain_disk_error(error, home)):
                raise
            print(why, file=sys.stderr)
            return UNUSABLE
    return 0


async def _serve_cloud(home: Path, port: int) -> None:
    main_part, *other_parts = server_parts()
    if not issubclass(main_part, MainServerPart):
        raise TypeError(f"{main_part.__qualname__}, of the first platform, is not a MainServerPart")
    cloud = main_part.open_cloud(home)
    listener = _open_listener(port) if port else _listener_on_last_port(home)
    served_port = listener.getsockname()[1]
    cloud.endpoint = f"http://127.0.0.1:{served_port}"
    parts = [part(cloud) for part in (main_part, *other_parts)]
    # The first platform's API takes every request that is left.
    cloud.apis = (*(part.api for part in parts[1:]), console_page.Console(cloud), parts[0].api)
    cloud.facts = {name: value for part in parts for name, value in part.facts.items()}
    config = uvicorn.Config(
        Application(cloud), http=DroppableConnection, loop="asyncio", ws="none", lifespan="off", log_config=None,
        access_log=False, server_header=False, timeout_keep_alive=60, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = _Server(config)
    chosen = os.environ.get(files.VARIABLE) or files.REQUIRED
    if chosen not in files.CHOICES:
        raise UnusableError(f"{files.VARIABLE} must be {' or '.join(files.CHOICES)}, not {chosen!r}")
    cloud.isolation = chosen
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)

    def make_fabric(services: Sequence[str]) -> Fabric:
        may_skip_rules = cloud.isolation == files.WHERE_POSSIBLE
        return Fabric(cloud.endpoint, services, partial(serve_another, server), may_skip_rules)

    for part in parts:
        await part.start_hosts(make_fabric)
    (home / LAST_PORT).write_text(str(served_port))
    content = {"pid": os.getpid(), "started": files.process_start_time(os.getpid()), "port": served_port}
    draft = home / "server.json.new"
    draft.write_text(json.dumps({**content, "version": VERSION, "code": str(PROJECT)}))
    draft.replace(home / "server.json")
    upkeep = [_stop_without_home(home, server), *(task for part in parts for task in part.upkeep())]
    watches = [asyncio.create_task(watch) for watch in upkeep]
    gc.freeze()  # these objects live as long as the process, so the garbage collector can skip them
    try:
        await server.serve(sockets=[listener])
    finally:
        for watch in watches:
            watch.cancel()
        for part in parts:
            await part.stop_hosts()
        # The first one holds the state, so it is closed last.
        for part in reversed(parts):
            await part.close()
        (home / "server.json").unlink(missing_ok=True)


async def _stop_without_home(home: Path, server: _Server) -> None:
    """Stops the server when its folder has been removed: users may delete a checkout without stopping its cloud."""
    while (home / "server.lock").exists():
        await asyncio.sleep(_HOME_CHECK_SECONDS)
    server.should_exit = True


def _open_listener(port: int) -> socket.socket:
    # asyncio disables Nagle's algorithm only if the protocol is set explicitly. With it a call takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        what = f"port {port} is not available" if port else "this machine has no free port"
        raise UnusableError(f"{what} ({error.strerror}): choose another port, or none to get a free one") from None
    listener.listen(512)
    return listener


def _listener_on_last_port(home: Path) -> socket.socket:
    """A listener on the port that this cloud used last, so that its addresses in states and files stay valid. If
    another program has that port now, on a free one."""
    try:
        return _open_listener(int((home / LAST_PORT).read_text()))
    except (OSError, ValueError, UnusableError):
        return _open_listener(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
