# SPDX-License-Identifier: Apache-2.0
"""The calls that a local cloud got, read from its log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from components.oci.types.oci_resource_type import OciResourceType
from components.platform.values import Properties
from localcloud.control import Cloud

_CALL = re.compile(r"^\S+ \S+ INFO [A-Z]+ /\S* \d{3} \S+ms ([A-Z]\w+)\b")


@dataclass
class Calls:
    """The names of the operations that were called while it read the log."""

    names: set[str] = field(default_factory=set)


@contextmanager
def listening(cloud: Cloud) -> Iterator[Calls]:
    """Collects all calls until the block ends, including those of other clients."""
    calls, log = Calls(), cloud.home / "server.log"
    begin = log.stat().st_size
    try:
        yield calls
    finally:
        with log.open() as file:
            file.seek(begin)
            calls.names |= {found[1] for line in file if (found := _CALL.match(line))}


def step_of(row: OciResourceType, step: str, inputs: Properties) -> set[str]:
    """The calls that a row has for a step, and those that only the local plugin makes."""
    given = [one[step] for name, one in row.given.items() if inputs.get(name) and step in one]
    return {*(given[0] if given else getattr(row, step)), *row.stand_in.get(step, ())}


def change_of(row: OciResourceType, name: str, inputs: Properties) -> list[set[str]]:
    """The calls of which one has to be made when an input changes."""
    own = row.stand_in.get(name, ())
    named = [{*calls, *own} for key, calls in row.changed.items() if key.partition(":")[0] == name]
    return named or [step_of(row, "update", inputs)]
