# SPDX-License-Identifier: Apache-2.0
"""What a container's libfabric finds, and how data moves between machines whose image's libraries decide it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass

# EFA's own folder first, then where images install.
FOLDERS = ("/opt/amazon/efa/bin", "/usr/local/bin", "/usr/bin")
_SECONDS = 30.0


@dataclass(frozen=True)
class Fabric:
    """The facts of the decision. `libfabric` empty: the image has no `fi_info`, so its version is unknown."""

    kernel: str
    libfabric: str
    efa: bool

    @property
    def lacks_efa(self) -> bool:
        """Whether the image has a libfabric that finds no EFA."""
        return bool(self.libfabric) and not self.efa


def detect_fabric(kernel: str, environment: Mapping[str, str], folders: Collection[str] = FOLDERS) -> Fabric:
    """The facts of this container."""
    every = (environment.get("LIBFABRIC_ROOT", "") + "/bin", *folders, *environment.get("PATH", "").split(":"))
    program = next((name for name in (f"{folder}/fi_info" for folder in every) if os.access(name, os.X_OK)), "")
    if not program:
        return Fabric(kernel, "", False)
    version = re.search(r"^libfabric: *(\S+)", _command_output([program, "--version"], environment) or "", re.MULTILINE)
    return Fabric(
        kernel, version[1] if version else "", _command_output([program, "-p", "efa"], environment) is not None
    )


def fabric_words(interfaces: int, fabric: Fabric) -> str:
    """How data moves between machines, for people. The machine's own libraries are not seen inside a container."""
    if not interfaces:
        return "TCP sockets"
    if not fabric.libfabric:
        return "EFA, if the image has libraries for it: it has no fi_info, so nobody can tell"
    if fabric.lacks_efa:
        return f"TCP sockets: libfabric {fabric.libfabric} of the image finds no EFA"
    return f"EFA over {interfaces} interfaces (libfabric {fabric.libfabric}), for libraries that use it"


def version_numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with."""
    match = re.match(r"\d+(\.\d+)*", version.strip())
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _command_output(words: list[str], environment: Mapping[str, str]) -> str | None:
    """The output of a command; None if it fails."""
    try:
        done = subprocess.run(
            words, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
