# SPDX-License-Identifier: Apache-2.0
"""Programs of the system that some tests need. Without the program, the test is skipped, and the reason says where its
package is listed."""

import shutil
import subprocess
from pathlib import Path

import pytest

# Debian installs some programs in folders that only root has in PATH.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def require_program(name: str) -> str:
    """The path of a program. Skips the test without it."""
    found = shutil.which(name) or shutil.which(name, path=_PATH)
    if found is None:
        pytest.skip(f"no {name} on this machine; tests/apt-packages.txt names the packages that tests use")
    return found


def make_ssh_key(file: Path, bits: int = 2048) -> str:
    """A new private RSA key in a file, without a passphrase."""
    words = [require_program("ssh-keygen"), "-q", "-t", "rsa", "-b", str(bits), "-N", "", "-f", str(file)]
    subprocess.run(words, check=True)
    return file.read_text()
