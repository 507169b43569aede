# SPDX-License-Identifier: Apache-2.0
"""Small and read-only disks for tests: what a mount namespace of their own allows."""

import os
import subprocess

import pytest


def mount_namespace() -> list[str]:
    """Words before a command that may then mount; without the privilege for it, the test is not for this machine."""
    words = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    told = subprocess.run([*words, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    if told.returncode:
        pytest.skip(f"no mount namespaces here: {told.stderr.strip()}")
    return words
