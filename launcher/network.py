# SPDX-License-Identifier: Apache-2.0
"""This machine's network: its address and interface towards the others, whether a port answers, and what it lacks."""

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
# The name of the environment that stands in for an image, on the local cloud.
VARIABLE = "TRAINYARD_ENVIRONMENT"


def own_address(environment: Mapping[str, str], towards: str) -> str:
    """The address at which others reach this node: the platform's answer, otherwise our address towards a host."""
    given = environment.get(ADDRESS_VARIABLE)
    if not given and not towards:
        raise LaunchError(
            f"{ADDRESS_VARIABLE} is not set: without a store on the network, a node cannot find out its own address"
        )
    return given or source_towards(towards)


def source_towards(host: str) -> str:
    """The source address that the kernel would use towards a host. Sends nothing."""
    family, _, _, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def interface_with_address(address: str) -> str:
    """The name of the interface with this address. Loopback has a whole block of addresses."""
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


def port_answers(host: str, port: int, seconds: float = 1.0) -> bool:
    """Whether a port accepts connections."""
    try:
        with socket.create_connection((host, port), timeout=seconds):
            return True
    except OSError:
        return False


# The list of packages that an image was built with, beside this launcher.
_PACKAGES = Path(__file__).resolve().parents[1] / "images" / "team.txt"


def missing_program(program: str, environment: Mapping[str, str], correct: str = "the command") -> str:
    """Why a program cannot be started, and what to do. `correct`: what else may be wrong."""
    name = environment.get(VARIABLE)
    if name:
        remedy = f"correct {correct}, or name the package that brings it in the job's `requirements:`"
        return f"`{program}` is not in this machine's environment `{name}`: {remedy}"
    return f"`{program}` is not in this image: correct {correct}, or the image"


def require_packages(launch: Launch, environment: Mapping[str, str]) -> None:
    """LaunchError if the image was built with other packages than the job asks for now.

    An image keeps its tag when a requirements file changes, so nothing else would notice. An image that trainyard did
    not build has no list: then its packages are up to the team.
    """
    if not launch.packages or VARIABLE in environment or not _PACKAGES.is_file():
        return
    if hashlib.sha256(_PACKAGES.read_bytes()).hexdigest()[: len(launch.packages)] != launch.packages:
        raise LaunchError(
            f"the job's `requirements:` have changed since this image was built: give the job's `image` a new tag, "
            f"then run `trainyard image build {launch.stack}` and `trainyard image push {launch.stack}`"
        )
