# SPDX-License-Identifier: Apache-2.0
"""Records on the machine's own disk how far each start has got. The program reads them first after a kill or a boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from launcher.aws_dl1.machine.facts import MachinePaths, read_json_object, write_json

ACCEPTED, STARTING, RUNNING, ENDED = "accepted", "starting", "running", "ended"


@dataclass
class Record:
    """`phase` STARTING: docker was asked to start the container. `state` is the start's state in the bucket."""

    number: int
    boot: str
    folder: Path
    phase: str = ACCEPTED
    began: float = 0.0
    state: dict[str, Any] = field(default_factory=dict)

    def save(self) -> None:
        write_json(self.folder / "record.json", {**asdict(self), "folder": ""})


def read_record(paths: MachinePaths, number: int) -> Record | None:
    """The record of a start; None if this machine has not begun it."""
    folder = start_folder(paths, number)
    row = read_json_object(folder / "record.json")
    return _parse_record(row, folder) if row else None


def start_folder(paths: MachinePaths, number: int) -> Path:
    return paths.starts / f"{number:08}"


def ended_records(paths: MachinePaths) -> Iterator[Record]:
    """The records of ended starts."""
    for folder in sorted(paths.starts.glob("[0-9]" * 8)):
        row = read_json_object(folder / "record.json")
        record = _parse_record(row, folder) if row else None
        if record is not None and record.phase == ENDED:
            yield record


def goes_on(paths: MachinePaths, boot: str) -> bool:
    """Whether a start that began in this boot has not ended."""
    every = (read_json_object(folder / "record.json") for folder in paths.starts.glob("[0-9]" * 8))
    return any(row["boot"] == boot and row["phase"] != ENDED for row in every if row)


def _parse_record(row: Mapping[str, Any], folder: Path) -> Record:
    return Record(
        int(row["number"]), str(row["boot"]), folder, str(row["phase"]), float(row["began"]), dict(row["state"])
    )
