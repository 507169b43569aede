# SPDX-License-Identifier: Apache-2.0
"""Serves the pack until the engine is done. The engine starts it (`pulumi preview --policy-pack policies`)."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Bytes of a message, as in Pulumi's own library for packs: a stack may be large.
LARGEST_MESSAGE = 400 * 1024 * 1024
THREADS = 4
_PARENT_CHECK_SECONDS = 1.0


def main() -> None:
    # Like all plugins, it listens on loopback and answers only its own account.
    from policies.pack import Pack, analyzer_pb2_grpc
    from trainyard.engine.callers import LoopbackServer

    parent = os.getppid()
    server = LoopbackServer(ThreadPoolExecutor(THREADS), options=[("grpc.max_receive_message_length", LARGEST_MESSAGE)])
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Pack(), server)
    port = server.add_insecure_port()
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    over = threading.Event()
    try:
        # A killed engine does not end its plugins, so we watch our parent.
        while not over.wait(_PARENT_CHECK_SECONDS) and os.getppid() == parent:
            pass
    except KeyboardInterrupt:
        pass
    server.stop(0)


if __name__ == "__main__":
    # The engine starts the folder, so Python would look for modules inside it, not beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    main()
