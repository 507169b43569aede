# SPDX-License-Identifier: Apache-2.0
"""One entry: `python -m launcher` starts this node's part of a run."""

import os
import sys

from launcher.document import LaunchError, read
from launcher.node import run

if __name__ == "__main__":
    try:
        sys.exit(run(read(dict(os.environ))))
    except LaunchError as error:
        print(f"launcher: {error}", file=sys.stderr)
        # EX_CONFIG of sysexits: nothing a retry could mend.
        sys.exit(78)
