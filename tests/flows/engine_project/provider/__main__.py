# SPDX-License-Identifier: Apache-2.0
"""A provider of one resource, on the SDK's gRPC classes: a note is a file."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc


class Notes(provider_pb2_grpc.ResourceProviderServicer):
    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version="0.1.0")

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse(acceptSecrets=False, supportsPreview=True, acceptResources=True)

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        replaced = ["path"] if request.olds["path"] != request.news["path"] else []
        changed = bool(replaced) or request.olds["text"] != request.news["text"]
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=kind, replaces=replaced)

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        state = request.properties
        if not request.preview:
            Path(state["path"]).write_text(state["text"])
            state["length"] = len(state["text"])
            state["writer"] = os.getpid()
        return provider_pb2.CreateResponse(id=state["path"], properties=state)

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        Path(request.id).unlink()
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()


def main() -> None:
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    server = grpc.server(ThreadPoolExecutor(4))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Notes(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    done.wait()
    server.stop(0).wait()


main()
