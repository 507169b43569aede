# SPDX-License-Identifier: Apache-2.0
"""One entry: `python -I -m launcher` starts this node's part of a run."""

import sys

from launcher.start import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
