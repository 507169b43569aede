# SPDX-License-Identifier: Apache-2.0
"""Mount namespaces for tests, in which they can mount small or read-only disks."""

import os
import subprocess

import pytest


def mount_namespace() -> list[str]:
    """Words to put before a command, so that it may mount. If that is not possible on this machine, the test is
    skipped."""
    words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    told = subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    if told.returncode:
        pytest.skip(f"no mount namespaces here: {told.stderr.strip()}")
    return words
