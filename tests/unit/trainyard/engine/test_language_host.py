# SPDX-License-Identifier: Apache-2.0
"""The start of the language host. For its work see tests/flows/test_engine.py."""

import subprocess
import sys


def test_the_language_host_starts_without_the_sdk() -> None:
    """The engine waits for it at every command: the SDK is for the programs that it runs."""
    code = "import sys, trainyard.engine.language_host; print('pulumi' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
