# SPDX-License-Identifier: Apache-2.0
"""Keeps the data ports that the kernel chooses for frameworks within the range that the firewall lets through.

The first way is a small library that processes load (pin.c); it needs no privilege. The second is the kernel's port
range, for the whole network namespace. If neither is possible, it prints a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from launcher.document import Launch
from launcher.network import ADDRESS_VARIABLE
from launcher.printing import LinePrinter

VARIABLE = "TRAINYARD_PIN_LIBRARY"
RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_NAME = "libpin.so"
# With fewer ports outgoing connections may fail: they use the kernel's range too.
_FEWEST_FOR_KERNEL = 32


@dataclass
class Pin:
    """Keeps the ports on this node, and restores the kernel's range at the end."""

    launch: Launch
    environment: Mapping[str, str]
    say: LinePrinter
    _before: str = field(default="", init=False)

    def variables(self, interface: str) -> dict[str, str]:
        """The variables that make processes keep to the range."""
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
        """The range of the data ports; None if they need not be kept."""
        for port in self.launch.ports.values():
            if port.pinned == "kernel-range" and port.listens and port.range is not None:
                return port.range
        return None

    def library(self) -> str:
        """The path of the library; empty if there is none."""
        beside = Path(__file__).parent / _NAME
        found = self.environment.get(VARIABLE) or (str(beside) if beside.exists() else "")
        return found if found and Path(found).exists() else ""

    def _by_kernel(self, ports: tuple[int, int], interface: str) -> bool:
        """Sets the kernel's range, but only if the node has a network namespace of its own."""
        # With loopback, or with an address in the variable, the node shares its machine's network.
        shared = ADDRESS_VARIABLE in self.environment or interface in ("", "lo")
        if shared or ports[1] - ports[0] + 1 < _FEWEST_FOR_KERNEL or self._before:
            return bool(self._before)
        try:
            before = RANGE.read_text("ascii").strip()
            if before.split() == [str(ports[0]), str(ports[1])]:  # already set from outside
                return True
            RANGE.write_text(f"{ports[0]} {ports[1]}\n", "ascii")
        except OSError:
            return False
        self._before = before
        self.say(f"the kernel keeps data ports to {ports[0]}-{ports[1]}")
        return True

    def undo(self) -> None:
        """Restores the kernel's range."""
        if self._before:
            with suppress(OSError):
                RANGE.write_text(f"{self._before}\n", "ascii")
            self._before = ""


def describe_pinning(launch: Launch, environment: Mapping[str, str]) -> str:
    """For `--check`: how ports would be kept."""
    pin = Pin(launch, environment, LinePrinter())
    if pin.range() is None:
        return ""
    return f"data ports are kept by {pin.library()}" if pin.library() else "data ports are kept by the kernel's range"
