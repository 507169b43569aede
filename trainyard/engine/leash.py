# SPDX-License-Identifier: Apache-2.0
"""Runs a command that ends when its parent process ends, for whatever reason.

It is started as a script: `python -IS leash.py PARENT COMMAND…`. It imports the standard library only, so that it runs
under any Python.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as problem:
        sys.exit(f"cannot run {command[0]}: {problem.strerror}")


if __name__ == "__main__":
    main()
