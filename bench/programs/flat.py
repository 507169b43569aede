# SPDX-License-Identifier: Apache-2.0
"""The peer of our Pulumi program: one plain SDK call per resource, and no logic.

`describe` turns a recording of our program into rows, and `run` makes them. Values from the cloud (ids, OCI's
namespace) are passed to other resources as outputs, as in a program written by hand. Each resource has the same
dependencies as in our program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pulumi

from components.runs import TYPE, Run, RunProvider
from tests.support.recorder.answers import HOME_OF, HOME_REGION, NAMESPACE, identify

if TYPE_CHECKING:
    from tests.support.recorder.client import Recording

PROVIDERS = "pulumi:providers:"
_ID, _TEXT, _HOME = "(id of)", "(text)", "(home region)"
# A recording's text for a secret, and its key for an uploaded file.
_SECRET, _FILE = "(secret)", "path"


def describe(recording: Recording) -> dict[str, Any]:
    """The rows of a recording, without components: they make nothing in a cloud."""
    resources = [resource for resource in recording.resources if resource.custom]
    # By name, but only providers: a group may have the same name.
    providers = {one.name: index for index, one in enumerate(resources) if one.type.startswith(PROVIDERS)}
    places = {index: one.name for index, one in enumerate(resources) if not one.type.startswith(PROVIDERS)}
    ids = {identify(one.type, one.name, one.inputs): index for index, one in enumerate(resources)}
    rows = []
    for index, one in enumerate(resources):
        # Only ids of earlier resources: a text may be equal to the id of a later one by chance.
        before = {written: at for written, at in ids.items() if at < index}
        rows.append(
            {
                "type": one.type,
                "name": one.name,
                "inputs": {_snake(one.type, key): _mark(value, before) for key, value in one.inputs.items()},
                "after": [at for at, name in places.items() if at < index and name in one.after],
                "provider": providers.get(one.provider.rsplit("::", 1)[-1]),
                "protect": one.protect,
                "retain": one.retain,
                "deleteFirst": one.delete_first,
            }
        )
    tokens = (one.type.partition(":")[0] for one in resources)
    sdk = next(name for name in tokens if name not in ("pulumi", "trainyard"))
    region = next(one.inputs["region"] for one in resources if one.type == f"{PROVIDERS}trainyard")
    return {"sdk": sdk, "region": region, "asks": _ASKS[sdk](recording), "rows": rows}


def _asks_of_oci(recording: Recording) -> dict[str, Any]:
    compartment = next(one.inputs["compartmentId"] for one in recording.resources if "compartmentId" in one.inputs)
    calls = (one["arguments"]["tenancyId"] for one in recording.invokes if one["function"] == HOME_OF)
    return {"compartment": compartment, "tenancy": next(calls)}


def _asks_of_aws(recording: Recording) -> dict[str, Any]:
    calls = (one for one in recording.invokes if one["function"].startswith("aws:"))
    return {one["function"]: one["arguments"] for one in calls}


# The function calls that each program makes before its resources.
_ASKS = {"oci": _asks_of_oci, "aws": _asks_of_aws}


def _snake(token: str, key: str) -> str:
    if token.startswith("trainyard:") or token == f"{PROVIDERS}trainyard":
        return key
    return re.sub("[A-Z]", lambda match: "_" + match[0].lower(), key)


def _mark(value: Any, ids: Mapping[str, int]) -> Any:
    """The value with the cloud's ids and namespaces replaced by markers, which become outputs again."""
    if isinstance(value, Mapping):
        return {key: _mark(item, ids) for key, item in value.items()}
    if isinstance(value, list):
        return [_mark(item, ids) for item in value]
    if isinstance(value, str):
        if value in ids:
            return {_ID: ids[value]}
        if value == HOME_REGION:
            return {_HOME: True}
        if NAMESPACE in value:
            return {_TEXT: value}
    return value


class Flat:
    """One run of the flat program."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._rows: Sequence[Mapping[str, Any]] = description["rows"]
        self._sdk, self._asks, self.region = description["sdk"], description["asks"], description["region"]
        self._made: list[Any] = []
        self._texts: dict[str, Any] = {}

    def run(self) -> None:
        sdk = import_module(f"pulumi_{self._sdk}")
        if self._sdk == "oci":
            self._ask_oci(sdk)
        else:
            for function, arguments in self._asks.items():
                # Our program also looks for resources that should not exist, and takes the error for an answer.
                with suppress(Exception):
                    pulumi.runtime.invoke(function, arguments)
        for row in self._rows:
            self._made.append(self._make(sdk, row))
        runs = {row["name"]: made for row, made in zip(self._rows, self._made, strict=True) if row["type"] == TYPE}
        pulumi.export("runs", {name: {"state": run.state, "nodes": run.node_runs} for name, run in runs.items()})

    def _ask_oci(self, oci: Any) -> None:
        compartment, tenancy = self._asks["compartment"], self._asks["tenancy"]
        self._namespace = oci.objectstorage.get_namespace_output(compartment_id=compartment).namespace
        regions = oci.identity.get_region_subscriptions_output(tenancy_id=tenancy).region_subscriptions
        self._home = regions.apply(lambda rows: next(row.region_name for row in rows if row.is_home_region))

    def _make(self, sdk: Any, row: Mapping[str, Any]) -> Any:
        inputs = {key: self._value(value) for key, value in row["inputs"].items()}
        options = pulumi.ResourceOptions(
            depends_on=[self._made[index] for index in row["after"]],
            provider=None if row["provider"] is None else self._made[row["provider"]],
            protect=row["protect"] or None,
            retain_on_delete=row["retain"] or None,
            delete_before_replace=row["deleteFirst"] or None,
        )
        match row["type"].split(":"):
            case ["trainyard", _, "Run"]:
                return Run(row["name"], inputs, options)
            case ["trainyard", *_]:
                return pulumi.CustomResource(row["type"], row["name"], inputs, options)
            case ["pulumi", "providers", "trainyard"]:
                return RunProvider(row["name"], inputs, options)
            case ["pulumi", "providers", _]:
                return sdk.Provider(row["name"], opts=options, **inputs)
            case [_, module, kind]:
                return getattr(getattr(sdk, module.split("/")[0].lower()), kind)(row["name"], opts=options, **inputs)
        raise ValueError(row["type"])

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        if _ID in value:
            return self._made[value[_ID]].id
        if _HOME in value:
            return self._home
        if _SECRET in value:
            return pulumi.Output.secret(value[_SECRET])
        if _FILE in value:
            return pulumi.FileAsset(value[_FILE])
        if _TEXT in value:
            return self._text(value[_TEXT])
        return {key: self._value(item) for key, item in value.items()}

    def _text(self, written: str) -> Any:
        """The output for a text. Resources with the same text share one, as a variable in a program written by hand."""
        if written not in self._texts:
            self._texts[written] = self._namespace.apply(lambda namespace: written.replace(NAMESPACE, namespace))
        return self._texts[written]


def load(text: str) -> Flat:
    return Flat(json.loads(text))
