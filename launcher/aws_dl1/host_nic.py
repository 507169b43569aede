# SPDX-License-Identifier: Apache-2.0
"""Decides how HCCL moves data between machines, from the machine's kernel and the libfabric of the image.

Source: the documents of Gaudi about scaling out by host NICs. HCCL itself takes the best way it finds, unless
HCCL_OVER_OFI is set: that means libfabric over the host's memory. The container decides and not the machine, because
its launcher comes with the ticket. So this module also applies to machines that an earlier release made.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass

# The stack file's `hostNic`, if it has changed since the machine was made.
VARIABLE, HOST_MEMORY = "TRAINYARD_HOST_NIC", "host-memory"
# Which of CHOSEN the stack file's `environment` sets. Machines of earlier releases do not set this variable.
OWN_VARIABLE = "TRAINYARD_HOST_NIC_OWN"
CHOSEN = ("HCCL_OVER_OFI", "HCCL_OVER_TCP", "FI_PROVIDER")
_SOCKETS, _EFA = "tcp", "efa"
# The lowest versions with Gaudi Direct: the interface reads and writes the memory of the accelerators.
_KERNEL, _LIBFABRIC = (5, 12), (1, 16, 1)
_DIRECT = {"RDMAV_FORK_SAFE": "1", "FI_EFA_USE_DEVICE_RDMA": "1"}
# In the order of options.LIBRARIES, so that the libfabric that HCCL loads is found first.
_FOLDERS = ("/opt/amazon/efa/bin", "/opt/habanalabs/libfabric/bin", "/usr/local/bin", "/usr/bin")
_SECONDS = 30.0


@dataclass(frozen=True)
class Fabric:
    """The facts of the decision. `libfabric` empty: the image has no `fi_info`, so its version is unknown."""

    kernel: str
    libfabric: str
    efa: bool


@dataclass(frozen=True)
class Transport:
    """Variables to set (None: to unset), and the choice in words for people."""

    variables: Mapping[str, str | None]
    words: str


def choose_transport(environment: Mapping[str, str], fabric: Fabric) -> Transport:
    """Chooses from the variables that the machine set, which follow the stack file's `hostNic`."""
    own = [name for name in environment.get(OWN_VARIABLE, "").split(",") if name]
    if own:
        return Transport({}, f"as the stack file's environment says ({', '.join(own)})")
    if "HCCL_OVER_TCP" in environment or environment.get("FI_PROVIDER") == _SOCKETS:
        # HCCL's sockets use the one interface that is named, and no other.
        return Transport({}, f"TCP sockets, over {environment.get('HCCL_SOCKET_IFNAME') or 'one interface'} only")
    if environment.get("HCCL_OVER_OFI") != "1" or environment.get("FI_PROVIDER") != _EFA:
        return Transport({}, "as the environment says")
    if environment.get(VARIABLE) == HOST_MEMORY:
        return Transport({}, "libfabric over the host's memory, as the stack file says")
    if fabric.libfabric and not fabric.efa:
        return Transport(
            {"FI_PROVIDER": _SOCKETS}, f"TCP sockets: libfabric {fabric.libfabric} of the image finds no EFA"
        )
    missing = _why_not_gaudi_direct(fabric)
    if missing:
        return Transport({}, f"libfabric over the host's memory: {missing}")
    words = f"Gaudi Direct over EFA (kernel {fabric.kernel}, libfabric {fabric.libfabric})"
    return Transport({"HCCL_OVER_OFI": None, **_DIRECT}, words)


def _why_not_gaudi_direct(fabric: Fabric) -> str:
    """Why Gaudi Direct is not possible; empty if it is."""
    if not fabric.libfabric:
        return "the image has no fi_info, so it is unknown whether its libfabric has Gaudi Direct"
    lacks = [
        f"{name} {version}, and {'.'.join(map(str, needed))} is needed"
        for name, version, needed in (("kernel", fabric.kernel, _KERNEL), ("libfabric", fabric.libfabric, _LIBFABRIC))
        if version_numbers(version) < needed
    ]
    return f"Gaudi Direct is not possible ({'; '.join(lacks)})" if lacks else ""


def detect_fabric(kernel: str, environment: Mapping[str, str], folders: Collection[str] = _FOLDERS) -> Fabric:
    """The facts of this container."""
    every = (environment.get("LIBFABRIC_ROOT", "") + "/bin", *folders, *environment.get("PATH", "").split(":"))
    program = next((name for name in (f"{folder}/fi_info" for folder in every) if os.access(name, os.X_OK)), "")
    if not program:
        return Fabric(kernel, "", False)
    version = re.search(r"^libfabric: *(\S+)", _command_output([program, "--version"], environment) or "", re.MULTILINE)
    return Fabric(
        kernel, version[1] if version else "", _command_output([program, "-p", "efa"], environment) is not None
    )


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
