# SPDX-License-Identifier: Apache-2.0
"""The values of `{rank}`, `{address.main}` and other placeholders on this node; docs/launcher.md lists them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.document import Launch
from launcher.errors import LaunchError

_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_-]+)?|port\.[A-Za-z0-9_-]+:(?:colon|first|last))\}")


@dataclass(frozen=True)
class Place:
    """This node among its peers: the addresses of all (empty: the node is gone), its own address, its interface.

    `life`: how often it has started before. `scratch`: a folder with a short path, if the node needs one.
    """

    addresses: tuple[str, ...]
    address: str
    interface: str
    life: int = 0
    scratch: str = "<scratch>"


def node_values(launch: Launch, place: Place) -> dict[str, str]:
    """The values that all processes of this node share."""
    values = {
        "rank": str(launch.rank),
        "nodes": str(launch.nodes),
        "fewest": str(launch.fewest),
        "role": launch.role,
        "index": str(launch.rank - launch.ranks_of(launch.role)[0]),
        "run": f"{launch.job}-{launch.name}-{launch.attempt}",
        "python": sys.executable,
        "launcher": str(Path(__file__).parent),
        "life": str(place.life),
        "address": place.address,
        "interface": place.interface,
        "scratch": place.scratch,
        "processes": str(launch.processes),
        "world": str(launch.nodes * launch.processes),
    }
    for role in launch.roles:
        ranks = launch.ranks_of(role.name)
        values[f"addresses.{role.name}"] = ",".join(place.addresses[rank] for rank in ranks)
        if ranks:
            values[f"address.{role.name}"] = place.addresses[ranks[0]]
    for label, port in launch.ports.items():
        if port.reserved:
            # Ports with gaps between them are no range: then a program gets 0, and chooses a free port itself.
            numbers = launch.port_numbers(label, launch.rank)
            first, last = numbers[0], numbers[-1]
            if list(numbers) != list(range(first, last + 1)):
                first = last = 0
            name, both = f"port.{label}", (first, last)
            values[name] = str(first) if first == last else "{}-{}".format(*both)
            values[f"{name}:colon"] = str(first) if first == last else "{}:{}".format(*both)
            values[f"{name}:first"], values[f"{name}:last"] = str(first), str(last)
    return values


def process_values(launch: Launch, local: int) -> dict[str, str]:
    """The values that differ between the processes of a node."""
    return {"local": str(local), "process": str(launch.rank * launch.processes + local)}


def fill_placeholders(text: str, values: Mapping[str, str], where: str) -> str:
    """`text` with its placeholders filled in."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            known = ", ".join(f"{{{name}}}" for name in sorted(values))
            raise LaunchError(f"`{where}` has the unknown placeholder {match[0]}; known ones are {known}")
        return values[match[1]]

    return _PLACEHOLDER.sub(value, text)


def fill_all_placeholders(words: Sequence[str], values: Mapping[str, str], where: str) -> list[str]:
    """Each word with its placeholders filled in."""
    return [fill_placeholders(word, values, where) for word in words]
