# SPDX-License-Identifier: Apache-2.0
"""Runs a plugin as the engine expects: a port on the first line of stdout, then gRPC until the engine is gone."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn

from provider.base.resource import Plugin
from provider.base.servicer import Servicer
from provider.base.wire import UNLIMITED_MESSAGES, Engine, provider_pb2_grpc
from trainyard.engine.callers import LoopbackServer

# Each wait holds a thread, and all resources of a stack may wait at once. Threads are started only when needed.
_MOST_AT_ONCE = 256
_SECONDS_BETWEEN_LOOKS_AT_THE_PARENT = 1.0
# The time for interrupted calls to finish, so that the engine's state gets the resources that they made.
_SECONDS_TO_ANSWER = 2.0


@dataclass(frozen=True)
class Served:
    server: Any
    port: int
    servicer: Servicer

    def stop(self) -> None:
        self.servicer.stop_waiting()
        self.server.stop(grace=_SECONDS_TO_ANSWER).wait()


def start_plugin(plugin: Plugin, engine_address: str = "") -> Served:
    server = LoopbackServer(ThreadPoolExecutor(max_workers=_MOST_AT_ONCE), options=UNLIMITED_MESSAGES)
    servicer = Servicer(plugin, Engine(engine_address))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port()
    server.start()
    return Served(server, port, servicer)


def main(plugin: Plugin, arguments: Sequence[str]) -> NoReturn:
    """Serves until the engine is done. `arguments` are those of the process; the last one is the engine's address."""
    # A killed engine cannot ask us to end, so we watch our parent. We read its number first: the engine may be killed
    # as soon as it knows our port.
    parent = os.getppid()
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    served = start_plugin(plugin, addresses[-1] if addresses else "")
    over = threading.Event()
    # Ctrl-C may reach the whole process group during calls. We end only after the engine has requested a stop, as
    # it does before it sends its own interrupt. The engine gives all plugins of a stack five seconds together.
    signal.signal(signal.SIGINT, lambda *_: over.set() if served.servicer.asked_to_stop else None)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    sys.stdout.write(f"{served.port}\n")
    sys.stdout.flush()
    while not over.wait(_SECONDS_BETWEEN_LOOKS_AT_THE_PARENT) and os.getppid() == parent:
        pass
    served.stop()
    # A running call to the cloud would delay the exit, and nobody waits for its response any more.
    os._exit(0)
