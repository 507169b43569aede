# SPDX-License-Identifier: Apache-2.0
"""Which versions of the engine we accept, which one we get, and for which machine."""

import platform
import re
from dataclasses import dataclass

# The version that is downloaded or built. engine/pulumi/go.mod pins the same one, and a test compares them.
ENGINE_VERSION = "3.250.0"
# The oldest `pulumi` on PATH that is accepted: the lower bound of the SDK in pyproject.toml.
OLDEST_ENGINE = "3.200.0"

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_NUMBERS = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


class EngineError(Exception):
    """No engine is installed, and none could be obtained. The message says why, and what to install."""


@dataclass(frozen=True)
class Machine:
    """An operating system and a processor, in Go's notation."""

    os: str
    processor: str

    @classmethod
    def here(cls) -> "Machine":
        processor = platform.machine().lower()
        return cls(platform.system().lower(), _MACHINES.get(processor, processor))


def version_numbers(version: str) -> tuple[int, int, int]:
    """`v3.250.0`, `go1.26` and so on as numbers that can be compared. (0, 0, 0) if the text has none."""
    match = _NUMBERS.search(version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


def at_least(version: str, oldest: str) -> bool:
    return version_numbers(version) >= version_numbers(oldest)
