# SPDX-License-Identifier: Apache-2.0
"""This machine on the network: which address and interface lead to the others, and whether a port answers."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from launcher.document import Launch
from launcher.errors import LaunchError

ADDRESS_VARIABLE = "TRAINYARD_NODE_ADDRESS"
_SIOCGIFADDR = 0x8915
# Set where no image is: the name of the environment in its place.
VARIABLE = "TRAINYARD_ENVIRONMENT"


def own_address(environment: Mapping[str, str], towards: str) -> str:
    """The address that others reach us by: what the platform says, else the source of what we send towards one."""
    given = environment.get(ADDRESS_VARIABLE)
    if not given and not towards:
        raise LaunchError(
            f"{ADDRESS_VARIABLE} is not set: without a store on the network, a node cannot find out its own address"
        )
    return given or source_towards(towards)


def source_towards(host: str) -> str:
    """The address the kernel would send from. Nothing is sent."""
    family, _, _, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def interface_of(address: str) -> str:
    """The name of the interface that has this address; loopback has a whole block of them."""
    if address.startswith("127.") or address == "::1":
        return "lo"
    if ":" in address:
        return _interface_of_ipv6(address)
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # an interface without an address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return ""


def _interface_of_ipv6(address: str) -> str:
    wanted = socket.inet_pton(socket.AF_INET6, address).hex()
    if not os.path.exists("/proc/net/if_inet6"):
        return ""
    with open("/proc/net/if_inet6", encoding="ascii") as table:
        for line in table:
            fields = line.split()
            if fields[0] == wanted:
                return fields[5]
    return ""


def answers(host: str, port: int, seconds: float = 1.0) -> bool:
    """Whether somebody listens there."""
    try:
        with socket.create_connection((host, port), timeout=seconds):
            return True
    except OSError:
        return False


# Where an image keeps the packages that it was built with, beside this launcher.
_PACKAGES = Path(__file__).resolve().parents[1] / "images" / "team.txt"


def missing_program(program: str, environment: Mapping[str, str], correct: str = "the command") -> str:
    """Why a program cannot be started, and what to do. `correct` is what may be wrong besides."""
    name = environment.get(VARIABLE)
    if name:
        remedy = f"correct {correct}, or name the package that brings it in the job's `requirements:`"
        return f"`{program}` is not in this machine's environment `{name}`: {remedy}"
    return f"`{program}` is not in this image: correct {correct}, or the image"


def require_packages(launch: Launch, environment: Mapping[str, str]) -> None:
    """LaunchError if the image was built with other packages than the job asks for now.

    The tag of an image stays the same when a requirements file changes, so nobody else would notice. An image of
    another origin keeps no list: then the team sees to its packages.
    """
    if not launch.packages or VARIABLE in environment or not _PACKAGES.is_file():
        return
    if hashlib.sha256(_PACKAGES.read_bytes()).hexdigest()[: len(launch.packages)] != launch.packages:
        raise LaunchError(
            f"the job's `requirements:` have changed since this image was built: give the job's `image` a new tag, "
            f"then run `trainyard image build {launch.stack}` and `trainyard image push {launch.stack}`"
        )
