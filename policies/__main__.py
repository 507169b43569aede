# SPDX-License-Identifier: Apache-2.0
"""Started by the engine (`pulumi preview --policy-pack policies`): serves the pack until the engine is done."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Started by folder, Python would look for modules inside it, not beside it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from pulumi_policy import PolicyPack

    from policies.pack import NAME, policies

    PolicyPack(NAME, policies())
