# SPDX-License-Identifier: Apache-2.0
"""Serves the pack until the engine is done. The engine starts it (`pulumi preview --policy-pack policies`)."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # The engine starts the folder, so Python would look for modules inside it, not beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    import grpc
    from pulumi_policy import PolicyPack

    from policies.pack import NAME, policies
    from trainyard.engine.callers import LoopbackServer

    # The SDK's server listens on every address of the machine, and answers whoever reaches it.
    grpc.server = LoopbackServer
    PolicyPack(NAME, policies())
