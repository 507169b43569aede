# SPDX-License-Identifier: Apache-2.0
"""The states of the stacks in the local backend, as rows of resources; read from their files, so it costs no engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

# The project that local stacks are of.
PROJECT_NAME = "trainyard"


@dataclass(frozen=True)
class State:
    """One stack: its project and name, and all that Pulumi keeps of it."""

    project: str
    stack: str
    rows: Sequence[Row]

    def made(self) -> Iterator[Row]:
        """What the stack made and has not removed yet; not what it only reads."""
        return (row for row in self.rows if row.get("custom") and row.get("id") and not row.get("external"))

    def outputs(self) -> Mapping[str, Any]:
        return next((row.get("outputs") or {} for row in self.rows if row["type"] == "pulumi:pulumi:Stack"), {})

    def provider(self, package: str) -> Row | None:
        """The provider of a cloud, if the stack has resources there or reads some."""
        return next((row for row in self.rows if row["type"] == f"pulumi:providers:{package}"), None)


def states(folder: Path) -> list[State]:
    """Every stack of a file backend, by the folder with its projects. One that is being written is left out."""
    every = []
    for file in sorted(folder.glob("*/*.json"), key=lambda file: (file.parent.name, file.stem)):
        try:
            latest = json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {}
        except (OSError, ValueError, KeyError):
            continue
        every.append(State(file.parent.name, file.stem, latest.get("resources") or ()))
    return every


def deployed_files(cloud_home: Path) -> dict[str, Path]:
    """The stacks of the local backend beside this cloud, each with the file that it was brought up from.

    That is a copy: the team's own file may be elsewhere, gone, or changed since, even to another platform.
    """
    folder = cloud_home.parent / "pulumi"
    every = states(folder / "state" / ".pulumi" / "stacks")
    own = [one.stack for one in every if one.project == PROJECT_NAME and any(one.made())]
    copies = {stack: folder / "stacks" / f"Pulumi.{stack}.yaml" for stack in own}
    return {stack: copy for stack, copy in copies.items() if copy.is_file()}


def has_address(text: str, address: str) -> bool:
    """Whether an address is in the text as a whole, or with a tag or digest of an image, or a path below it."""
    return re.search(rf"(?<![\w./-]){re.escape(address)}(?![\w.-])", text) is not None


def name_of(row: Row) -> str:
    """What the resource is called in the cloud."""
    values = row.get("outputs") or row.get("inputs") or {}
    return str(values.get("name") or values.get("displayName") or row["urn"].rpartition("::")[2])
