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

import grpc

from provider.base.engine import Engine
from provider.base.resource import Plugin
from provider.base.servicer import Servicer
from provider.base.wire import UNLIMITED_MESSAGES, provider_pb2_grpc

# A wait holds a thread, and the engine may have every resource of a stack wait at once. Threads are made when needed.
_MOST_AT_ONCE = 256
_SECONDS_BETWEEN_LOOKS_AT_THE_PARENT = 1.0
# For calls that were cut short: what they have made so far must still reach the engine's state.
_SECONDS_TO_ANSWER = 2.0


@dataclass(frozen=True)
class Served:
    server: Any
    port: int
    servicer: Servicer

    def stop(self) -> None:
        self.servicer.stop_waiting()
        self.server.stop(grace=_SECONDS_TO_ANSWER).wait()


def start(plugin: Plugin, engine_address: str = "") -> Served:
    server = grpc.server(ThreadPoolExecutor(max_workers=_MOST_AT_ONCE), options=UNLIMITED_MESSAGES)
    servicer = Servicer(plugin, Engine(engine_address))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return Served(server, port, servicer)


def main(plugin: Plugin, arguments: Sequence[str]) -> NoReturn:
    """`arguments` are those of the process: the engine gives its own address as the last one."""
    # An engine that was killed can't ask us to end, and nobody may be left behind. Looked up before the engine can know
    # of us, for it may be killed as soon as it does.
    parent = os.getppid()
    addresses = [argument for argument in arguments if not argument.startswith("-")]
    served = start(plugin, addresses[-1] if addresses else "")
    over = threading.Event()
    # Ctrl-C may reach the whole process group while calls go on: it ends us only once the engine has asked us to stop,
    # as it does before its own interrupt. It gives all plugins of a stack five seconds together.
    signal.signal(signal.SIGINT, lambda *_: over.set() if served.servicer.asked_to_stop else None)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    sys.stdout.write(f"{served.port}\n")
    sys.stdout.flush()
    while not over.wait(_SECONDS_BETWEEN_LOOKS_AT_THE_PARENT) and os.getppid() == parent:
        pass
    served.stop()
    # A call to the cloud that is under way would hold the interpreter back, and nobody is left to hear its answer.
    os._exit(0)
