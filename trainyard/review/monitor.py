# SPDX-License-Identifier: Apache-2.0
"""Pulumi's mock monitor, which writes down all that a program asks for, as plain values."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pulumi
from google.protobuf.json_format import MessageToDict

from catalog import engine_values


def plain(value: Any) -> Any:
    """A value of the wire with secrets and unknowns as one-key mappings, whole numbers as integers."""
    if isinstance(value, dict):
        if value.get(engine_values.SIGNATURE) == engine_values.SECRET:
            return {"(secret)": plain(value.get("value"))}
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if value == engine_values.UNKNOWN_TEXT:
        return {"(unknown)": True}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def unpack(message: Any) -> Any:
    return plain(MessageToDict(message))


class Recorder(pulumi.runtime.mocks.MockMonitor):
    """Calls arrive from several threads; each is written down whole."""

    def __init__(self, mocks: pulumi.runtime.Mocks) -> None:
        super().__init__(mocks)
        self.recorded: list[dict[str, Any]] = []
        self._aliases: dict[str, list[str]] = {}
        self.invoked: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the name is the protocol's
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        implied = {urn for named in request.propertyDependencies.values() for urn in named.urns}
        self._note(
            self.recorded,
            {
                "type": request.type,
                "name": request.name,
                "urn": answer.urn,
                "id": getattr(answer, "id", ""),
                "outputs": unpack(answer.object),
                "aliases": self._aliases_of(request, answer.urn),
                "parent": request.parent,
                "provider": request.provider.rsplit("::", 1)[0],
                "inputs": unpack(request.object),
                "after": _sorted(set(request.dependencies) - implied),
                "needs": _sorted(implied),
                "custom": request.custom,
                "protect": request.protect,
                "retain": request.retainOnDelete,
                "deleteFirst": request.deleteBeforeReplace,
                "ignored": sorted(request.ignoreChanges),
                "replacedFor": sorted(request.replaceOnChanges),
                "trigger": unpack(request.replacement_trigger),
            },
        )
        return answer

    def _aliases_of(self, request: Any, urn: str) -> list[str]:
        """The URNs under which it may be in a state: its own earlier names, and those that follow from its parent's."""
        names = [request.name, *(one.spec.name for one in request.aliases if one.HasField("spec") and one.spec.name)]
        above = request.parent.rpartition("::")[2]
        for earlier in self._aliases.get(request.parent, ()):
            was = earlier.rpartition("::")[2]
            # A child whose name begins with its parent's is renamed with it, as the engine does.
            names += [was + name[len(above) :] for name in names if above and name.startswith(above)]
        found = {f"{urn.rpartition('::')[0]}::{name}" for name in names}
        found |= {one.urn for one in request.aliases if one.HasField("urn")}
        self._aliases[urn] = sorted(found - {urn})
        return self._aliases[urn]

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        answer = super().ReadResource(request)  # type: ignore[no-untyped-call]
        read = {"type": request.type, "name": request.name, "urn": answer.urn, "read": True}
        self._note(self.recorded, {**read, "inputs": unpack(request.properties)})
        return answer

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        self._note(self.invoked, {"function": request.tok, "arguments": unpack(request.args)})
        return super().Invoke(request)  # type: ignore[no-untyped-call]

    def _note(self, where: list[dict[str, Any]], what: dict[str, Any]) -> None:
        with self._lock:
            where.append(what)


def _sorted(urns: Iterable[str]) -> list[str]:
    return sorted(urn for urn in urns if "::pulumi:pulumi:Stack::" not in urn)
