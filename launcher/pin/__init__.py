# SPDX-License-Identifier: Apache-2.0
"""Keeps data ports, which frameworks let the kernel choose, to the range that the firewall lets through.

By a small library that processes load (pin.c), which needs no privilege; else by the kernel's range for the whole
network namespace; else not at all, and then it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from launcher.document import Launch
from launcher.network import ADDRESS_VARIABLE
from launcher.say import Voice

VARIABLE = "TRAINYARD_PIN_LIBRARY"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_NAME = "libpin.so"
# Fewer would starve what the node sends: a connection going out needs a port of the kernel's range too.
_FEWEST_FOR_KERNEL = 32


@dataclass
class Pin:
    """What is done on this node, and undone in the end."""

    launch: Launch
    environment: Mapping[str, str]
    say: Voice
    _before: str = field(default="", init=False)

    def variables(self, interface: str) -> dict[str, str]:
        """What processes are told, so that they keep to the range."""
        ports = self.range()
        if ports is None:
            return {}
        library = self.library()
        if library:
            loaded = " ".join(filter(None, (library, self.environment.get("LD_PRELOAD", ""))))
            return {"LD_PRELOAD": loaded, "TRAINYARD_PIN_PORTS": f"{ports[0]}-{ports[1]}"}
        if not self._by_kernel(ports, interface):
            self.say(
                f"warning: data ports are not kept to {ports[0]}-{ports[1]} here: there is no {_NAME} and the kernel's"
                f" port range cannot be set. Use our images, which have {_NAME}, name a copy of it in {VARIABLE}, or"
                " open `data: all`"
            )
        return {}

    def range(self) -> tuple[int, int] | None:
        """The ports that have to be kept, if any."""
        for port in self.launch.ports.values():
            if port.pinned == "kernel-range" and port.listens and port.range is not None:
                return port.range
        return None

    def library(self) -> str:
        """The library, empty where there is none."""
        beside = Path(__file__).parent / _NAME
        found = self.environment.get(VARIABLE) or (str(beside) if beside.exists() else "")
        return found if found and Path(found).exists() else ""

    def _by_kernel(self, ports: tuple[int, int], interface: str) -> bool:
        """Only where the nodes have networks of their own: on loopback they share this machine's."""
        # Such an address means that the node shares the network of its machine.
        shared = ADDRESS_VARIABLE in self.environment or interface in ("", "lo")
        if shared or ports[1] - ports[0] + 1 < _FEWEST_FOR_KERNEL or self._before:
            return bool(self._before)
        try:
            before = RANGE.read_text("ascii").strip()
            if before.split() == [str(ports[0]), str(ports[1])]:  # set from outside, where nodes may set nothing
                return True
            RANGE.write_text(f"{ports[0]} {ports[1]}\n", "ascii")
        except OSError:
            return False
        self._before = before
        self.say(f"the kernel keeps data ports to {ports[0]}-{ports[1]}")
        return True

    def undo(self) -> None:
        """The kernel's range as it was."""
        if self._before:
            with suppress(OSError):
                RANGE.write_text(f"{self._before}\n", "ascii")
            self._before = ""


def described(launch: Launch, environment: Mapping[str, str]) -> str:
    """For `--check`: how ports are kept, without doing it."""
    pin = Pin(launch, environment, Voice())
    if pin.range() is None:
        return ""
    return f"data ports are kept by {pin.library()}" if pin.library() else "data ports are kept by the kernel's range"
