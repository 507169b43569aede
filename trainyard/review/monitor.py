# SPDX-License-Identifier: Apache-2.0
"""What a recorded program has in place of Pulumi: configuration, a monitor that records requests, answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pulumi
import yaml
from google.protobuf.json_format import MessageToDict

from catalog import engine_values
from catalog.nested import map_values
from components.platform.review import OfflineCloud, OfflineStack, unknown_value
from schemas.scalars import has_secret, is_secret, secrets_in

STACK_OUTPUTS = "pulumi:pulumi:readStackOutputs"
STACK_RESOURCES = "pulumi:pulumi:readStackResourceOutputs"
ORGANIZATION = "organization"
# A shorter text cannot be an encrypted value.
_SHORTEST = 8


def plain_property(value: Any) -> Any:
    """A value of the engine's protocol. Secrets and unknowns become one-key mappings, whole numbers integers."""

    def change(part: Any) -> Any:
        if isinstance(part, dict) and part.get(engine_values.SIGNATURE) == engine_values.SECRET:
            return {"(secret)": plain_property(part.get("value"))}
        if part == engine_values.UNKNOWN_TEXT:
            return {"(unknown)": True}
        return int(part) if isinstance(part, float) and part.is_integer() else part

    return map_values(value, change)


def unpack_message(message: Any) -> Any:
    return plain_property(MessageToDict(message))


NoteAliases = Callable[[str, str, Iterable[str]], object]


class RecordingMonitor(pulumi.runtime.mocks.MockMonitor):
    """Records the requests of a program, which come from several threads. `note_aliases` is told of each resource's
    earlier names before the resource is answered."""

    def __init__(self, mocks: pulumi.runtime.Mocks, note_aliases: NoteAliases = lambda *_: None) -> None:
        super().__init__(mocks)
        self._note_aliases = note_aliases
        self.recorded: list[dict[str, Any]] = []
        self._aliases: dict[str, list[str]] = {}
        self.invoked: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  # the name is the protocol's
        urn = self.make_urn(request.parent, request.type, request.name)
        aliases = self._aliases_of(request, urn)
        self._note_aliases(request.type, request.name, aliases)
        answer = super().RegisterResource(request)  # type: ignore[no-untyped-call]
        implied = {urn for dependencies in request.propertyDependencies.values() for urn in dependencies.urns}
        self._note(
            self.recorded,
            {
                "type": request.type,
                "name": request.name,
                "urn": answer.urn,
                "id": getattr(answer, "id", ""),
                "outputs": unpack_message(answer.object),
                "aliases": aliases,
                "parent": request.parent,
                "provider": request.provider.rsplit("::", 1)[0],
                "inputs": unpack_message(request.object),
                "after": _sorted_dependencies(set(request.dependencies) - implied),
                "needs": _sorted_dependencies(implied),
                "custom": request.custom,
                # A component that its provider makes: its resources are not known here.
                "remote": request.remote,
                "protect": request.protect,
                "retain": request.retainOnDelete,
                "deleteFirst": request.deleteBeforeReplace,
                "ignored": sorted(request.ignoreChanges),
                "replacedFor": sorted(request.replaceOnChanges),
                "trigger": unpack_message(request.replacement_trigger),
            },
        )
        return answer

    def _aliases_of(self, request: Any, urn: str) -> list[str]:
        """The URNs under which a state may have the resource, by earlier names of itself and of its parents."""
        specs = [alias.spec for alias in request.aliases if alias.HasField("spec")]
        names = [request.name, *(spec.name for spec in specs if spec.name)]
        above = request.parent.rpartition("::")[2]
        for earlier in self._aliases.get(request.parent, ()):
            was = earlier.rpartition("::")[2]
            # As in the engine, a child whose name begins with its parent's is renamed with the parent.
            names += [was + name[len(above) :] for name in names if above and name.startswith(above)]
        found = {f"{urn.rpartition('::')[0]}::{name}" for name in names}
        found |= {alias.urn for alias in request.aliases if alias.HasField("urn")}
        self._aliases[urn] = sorted(found - {urn})
        return self._aliases[urn]

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        answer = super().ReadResource(request)  # type: ignore[no-untyped-call]
        read = {"type": request.type, "name": request.name, "urn": answer.urn, "read": True}
        self._note(self.recorded, {**read, "inputs": unpack_message(request.properties)})
        return answer

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        self._note(self.invoked, {"function": request.tok, "arguments": unpack_message(request.args)})
        return super().Invoke(request)  # type: ignore[no-untyped-call]

    def _note(self, where: list[dict[str, Any]], what: dict[str, Any]) -> None:
        with self._lock:
            where.append(what)


def _sorted_dependencies(urns: Iterable[str]) -> list[str]:
    return sorted(urn for urn in urns if "::pulumi:pulumi:Stack::" not in urn)


class MockedCloud(pulumi.runtime.Mocks):
    """Answers a program: ids and outputs of its resources, its lookups, and its own state.

    `state`: the recording of the other side.
    """

    def __init__(self, cloud: OfflineCloud, stack: OfflineStack, project: str, state: Mapping[str, Any]) -> None:
        self._cloud, self._stack, self._state = cloud, stack, state
        self._earlier_names: dict[tuple[str, str], str] = {}
        self._itself = f"{ORGANIZATION}/{project}/{stack.name}"

    def keep_earlier_name(self, token: str, name: str, aliases: Iterable[str]) -> None:
        """A renamed resource keeps the id that it got by its earlier name."""
        if earlier := next((urn for urn in aliases if urn in self._state.get("resources", {})), None):
            self._earlier_names[token, name] = earlier.rpartition("::")[2]

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        try:
            return dict(self._answer(args.token, args.args)), []
        except LookupError as refused:
            return {}, [("", str(refused))]

    def _answer(self, function: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if function == STACK_OUTPUTS:
            named = arguments["name"]
            own = self._state.get("outputs", {}) if named == self._itself else self._referenced_outputs(named)
            return {**arguments, "outputs": own}
        if function == STACK_RESOURCES:
            rows = self._state.get("resources", {}) if arguments["stackName"] == self._itself else {}
            return {"name": arguments["stackName"], "outputs": {urn: {"outputs": row} for urn, row in rows.items()}}
        return self._cloud.answer(function, arguments, self._stack)

    def _referenced_outputs(self, stack: str) -> dict[str, Any]:
        return {name: unknown_value(f"{name} of {stack}") for name in self._cloud.borrowed()}

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        if args.typ == "pulumi:pulumi:StackReference":
            outputs = self._referenced_outputs(str(args.inputs["name"]))
            return args.inputs["name"], {**args.inputs, "outputs": outputs, "secretOutputNames": []}
        if args.custom is False:
            return "", args.inputs
        name = self._earlier_names.get((args.typ, args.name), args.name)
        if args.typ.startswith("trainyard:") and args.typ.endswith(":Run"):
            return f"run-{name}", {**args.inputs, "state": unknown_value("state"), "nodeRuns": []}
        made = self._cloud.outputs(args.typ, name, args.inputs)
        return self._cloud.identify(args.typ, name, args.inputs), {**args.inputs, **made}


def read_stack_configuration(file: Path) -> tuple[dict[str, str], list[str]]:
    """A stack file's configuration as Pulumi passes it to a program (objects as JSON), and the keys with secrets."""
    written = _read_config(file)
    values = {key: value if isinstance(value, str) else "" for key, value in written.items()}
    secret = [key for key, value in written.items() if has_secret(value)]
    for key, value in written.items():
        # Secrets stay encrypted: there is no key here, and the encrypted text can stand for the secret.
        opened = map_values(value, lambda part: part["secure"] if is_secret(part) else part)
        values[key] = opened if isinstance(opened, str) else json.dumps(opened)
    return values, secret


def encrypted_texts(file: Path) -> tuple[str, ...]:
    """The encrypted texts of the file, the longest first."""
    found = {text for _, text in secrets_in(_read_config(file))}
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST), key=lambda text: (-len(text), text)))


def _read_config(file: Path) -> Any:
    # PyYAML's own scanner takes seconds for hundreds of jobs.
    return yaml.load(file.read_text("utf-8"), yaml.CSafeLoader)["config"]
