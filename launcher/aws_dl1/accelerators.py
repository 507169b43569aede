# SPDX-License-Identifier: Apache-2.0
"""What a machine's accelerators need and show, from its node.json. That is a row of catalog/aws_accelerators.toml, so
that the program on a machine knows no kind of accelerator by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LINES, JSON = "lines", "json"
# In a word of docker's: the number of one accelerator. In a variable: the address of the first node.
_INDEX, _FIRST = "{index}", "{first}"


@dataclass(frozen=True)
class Accelerator:
    """`count`: on one machine. `runtime`: of docker; empty: docker's own. `docker`: arguments of every container.
    `environment`, `meets`: variables of containers; those of `meets` contain the first node's address.

    `shows`: the program that lists the accelerators, one a line or as a list of JSON (`listed`). `late`: for so many
    seconds after the boot, devices may still appear. `host_nic`: whether launcher/aws_dl1/host_nic.py decides how data
    moves between machines; otherwise the libraries of the image do.
    """

    words: str
    count: int = 0
    runtime: str = ""
    docker: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    meets: Mapping[str, str] = field(default_factory=dict)
    shows: tuple[str, ...] = ()
    listed: str = LINES
    late: float = 0.0
    host_nic: bool = False

    def docker_words(self) -> list[str]:
        """The arguments of a container: those with an index once for each accelerator."""
        words = [f"--runtime={self.runtime}"] if self.runtime else []
        for word in self.docker:
            numbers = range(self.count if _INDEX in word else 1)
            words += [word.replace(_INDEX, str(number)) for number in numbers]
        return words

    def meeting_variables(self, first: str) -> dict[str, str]:
        """The variables by which the accelerators of all nodes meet at the first node's address."""
        return {name: text.replace(_FIRST, first) for name, text in self.meets.items()}

    def count_shown(self, output: str) -> int:
        """How many accelerators the program listed. Indented lines are parts of one. ValueError: it is no list."""
        if self.listed != JSON:
            return sum(bool(line[:1].strip()) for line in output.splitlines())
        rows = json.loads(output)
        if not isinstance(rows, list):
            raise ValueError("its JSON is not a list")
        return len(rows)


def parse_accelerator(row: Mapping[str, Any]) -> Accelerator:
    """Reads the part of node.json. KeyError, TypeError or ValueError if it is something else."""
    return Accelerator(
        words=str(row["words"]),
        count=int(row.get("count", 0)),
        runtime=str(row.get("runtime", "")),
        docker=tuple(map(str, row.get("docker", ()))),
        environment={str(name): str(value) for name, value in dict(row.get("environment", {})).items()},
        meets={str(name): str(value) for name, value in dict(row.get("meets", {})).items()},
        shows=tuple(map(str, row.get("shows", ()))),
        listed=str(row.get("listed", LINES)),
        late=float(row.get("late", 0)),
        host_nic=bool(row.get("host_nic", False)),
    )
