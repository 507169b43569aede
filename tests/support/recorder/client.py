# SPDX-License-Identifier: Apache-2.0
"""The tests' side of the recorder: starts its process once, and returns recordings as values."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Resource:
    """One registered resource. `after`: its dependencies. `needs`: the resources from which its properties come."""

    type: str
    name: str
    parent: str
    provider: str
    inputs: Mapping[str, Any]
    after: tuple[str, ...]
    needs: tuple[str, ...]
    custom: bool
    protect: bool
    retain: bool
    delete_first: bool
    ignored: tuple[str, ...]
    replaced_for: tuple[str, ...]
    trigger: Any
    urn: str

    @property
    def changing(self) -> Mapping[str, Any]:
        """The inputs without those whose changes the engine ignores (`ignoreChanges`)."""
        inputs = deepcopy(dict(self.inputs))
        for path in self.ignored:
            *above, last = path.split(".")
            holder = inputs
            for step in above:
                holder = holder.get(step, {})
            holder.pop(last, None)
        return inputs

    @property
    def kind(self) -> str:
        return self.type.rsplit(":", 1)[-1]


@dataclass(frozen=True)
class Recording:
    resources: tuple[Resource, ...]
    invokes: tuple[Mapping[str, Any], ...]
    exports: Mapping[str, Any]
    references: tuple[str, ...]
    warnings: tuple[str, ...]

    def of(self, kind: str) -> dict[str, Resource]:
        """The resources of one type, by logical name, without components, which may have the same type and name."""
        return {resource.name: resource for resource in self.resources if resource.custom and resource.kind == kind}

    def one(self, kind: str) -> Resource:
        (found,) = self.of(kind).values()
        return found

    def made(self) -> Iterator[Resource]:
        """The resources in a cloud, without components and providers."""
        for resource in self.resources:
            if resource.custom and not resource.type.startswith("pulumi:"):
                yield resource


class ProgramError(Exception):
    """The program raised an error. The text is its traceback."""


class Client:
    """Starts, uses and ends the recorder's process."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "error", "-m", "tests.support.recorder.server"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def record(
        self,
        file: Path,
        root: Path,
        *,
        preview: bool = False,
        references: Mapping[str, Mapping[str, Any]] | None = None,
        variables: Mapping[str, str] = MappingProxyType({}),
        locked: bool = False,
        home: str = "",
    ) -> Recording:
        """Records what the program of this stack file registers with Pulumi. `variables`: added to its environment.

        It runs in the folder `root`, and writes its files there. `locked`: only root may write to that folder. `home`:
        the tenancy's home region; by default it is not the stack's.
        """
        request = {
            "file": str(file), "root": str(root), "preview": preview, "references": dict(references or {}),
            "variables": dict(variables), "locked": locked, "home": home,
        }  # fmt: skip
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the recorder has no pipes")
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise ProgramError(answer["error"])
        return _recording(answer)


def _recording(answer: Mapping[str, Any]) -> Recording:
    registered = [row for row in answer["resources"] if "read" not in row]
    names = {row["urn"]: row["name"] for row in registered}

    def named(urns: list[str]) -> tuple[str, ...]:
        return tuple(sorted(names.get(urn, urn) for urn in urns))

    resources = tuple(
        Resource(
            type=row["type"],
            name=row["name"],
            parent=names.get(row["parent"], ""),
            provider=names.get(row["provider"], ""),
            inputs=row["inputs"],
            after=named(row["after"]),
            needs=named(row["needs"]),
            custom=row["custom"],
            protect=row["protect"],
            retain=row["retain"],
            delete_first=row["deleteFirst"],
            ignored=tuple(row["ignored"]),
            replaced_for=tuple(row["replacedFor"]),
            trigger=row["trigger"],
            urn=row["urn"],
        )
        for row in registered
        if row["type"] != "pulumi:pulumi:Stack"
    )
    read = tuple(row["inputs"]["name"] for row in answer["resources"] if "read" in row)
    return Recording(resources, tuple(answer["invokes"]), answer["exports"], read, tuple(answer["warnings"]))
