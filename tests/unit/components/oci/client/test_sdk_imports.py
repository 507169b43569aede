# SPDX-License-Identifier: Apache-2.0
"""Oracle's SDK is imported completely, whichever thread imports it first."""

import subprocess
import sys

# Threads switch as often as they can, which breaks plain imports of these in most processes.
FROM_ALL_SIDES = """\
import sys, threading
from components.oci.client.session import sdk_module
sys.setswitchinterval(1e-5)
names = ["config", "retry", "regions", "circuit_breaker", "logging.models", "vault.models", "artifacts"]
begin, whole = threading.Barrier(len(names)), []
def ask(name):
    begin.wait()
    whole.append(sdk_module(name).__name__)
threads = [threading.Thread(target=ask, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(*sorted(whole))
"""
PROCESSES = 3


def test_threads_that_need_different_parts_at_once_all_get_them() -> None:
    told = [
        subprocess.run([sys.executable, "-c", FROM_ALL_SIDES], capture_output=True, text=True) for _ in "x" * PROCESSES
    ]
    expected = (
        "oci.artifacts oci.circuit_breaker oci.config oci.logging.models oci.regions oci.retry oci.vault.models\n"
    )
    assert [(done.stdout, done.stderr) for done in told] == [(expected, "")] * PROCESSES
