# SPDX-License-Identifier: Apache-2.0
"""A resource type from a row: create, read, update and delete, in the way that most of OCI's types share."""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from catalog.tables import table
from localcloud.plugin.convert import fields, from_model, project, to_model
from localcloud.plugin.rows import ResourceTypeRow
from provider.base.diff import Diff, DiffRules, canonical, changed_keys, compare
from provider.base.errors import InputFailure, PartialFailureError, ProviderError
from provider.base.resource import (
    Call,
    CheckedInputs,
    CreatedResource,
    LiveResource,
    ProviderResource,
    unknown_where_missing,
)
from provider.base.values import Properties
from provider.oci.calls import attempt, is_gone, make_once, read_if_exists
from provider.oci.session import Session

_SECONDS = 1200.0  # the default of Oracle's provider for every type here
_SECONDS_IN_USE = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.05, 5.0, 1.5
_TAKEN = frozenset({"BucketAlreadyExists", "NotAuthorizedOrResourceAlreadyExists"})
_UNINTERESTING = frozenset({"__defaults", "id"})
# Inputs whose keys users choose.
MAPS = frozenset({
    "definedTags", "environmentVariables", "freeformTags", "metadata", "parameters", "securityAttributes"
})  # fmt: skip


def rules_of(token: str) -> DiffRules:
    row: Mapping[str, list[str]] = table("replacement").get(token, {})
    return DiffRules(**{key: frozenset(row.get(key, ())) for key in ("replace", "computed", "unordered")}, maps=MAPS)


class TableResource(ProviderResource):
    """The conventions. A type that departs from them has a subclass in localcloud.plugin.behaviours."""

    def __init__(self, token: str, row: ResourceTypeRow, session: Callable[[], Session]) -> None:
        self.row = row
        self.token = token
        self.rules = rules_of(token)
        self._session = session

    # -- names and models

    @property
    def client(self) -> Any:
        return self._session().client(self.row.client)

    @property
    def _stem(self) -> str:
        return "".join(word.capitalize() for word in self.row.noun.split("_"))

    def inputs_of_api(self) -> frozenset[str]:
        """The Pulumi names of all inputs."""
        created = fields(self.row.service, f"Create{self._stem}Details")
        changed = fields(self.row.service, f"Update{self._stem}Details")
        api = self._back(dict.fromkeys((*created, *changed)))
        return frozenset(api) | self.row.extra | frozenset(self.row.within)

    def outputs_of_api(self) -> frozenset[str]:
        return frozenset(self._back(dict.fromkeys(fields(self.row.service, self.row.model))))

    def _details(self, kind: str, inputs: Properties) -> Any:
        renamed = {self.row.renamed.get(key, key): value for key, value in inputs.items()}
        return to_model(self.row.service, f"{kind}{self._stem}Details", self.to_api(renamed))

    def _back(self, properties: Properties) -> Properties:
        names = {api: name for name, api in self.row.renamed.items()}
        return {names.get(key, key): value for key, value in properties.items()}

    def to_api(self, inputs: Properties) -> Properties:
        return inputs

    def from_api(self, outputs: Properties) -> Properties:
        return outputs

    def shown(self, model: Any, inputs: Properties) -> Properties:
        """The outputs: the inputs, overlaid with the live values."""
        return {**inputs, **self._back(self.from_api(from_model(model)))}

    # -- the engine's calls

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        inputs = {**self.row.defaults, **new}
        if self.row.named and inputs.get("name") is None:
            seed = call.seed or call.urn.encode()
            inputs["name"] = old.get("name") or f"{call.name}-{hashlib.sha256(seed).hexdigest()[:7]}"
        accepted = self.inputs_of_api() | _UNINTERESTING
        unknown = sorted(set(inputs) - accepted)
        return CheckedInputs(inputs, tuple(InputFailure(key, f"{self.token} has no input `{key}`.") for key in unknown))

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        keeps_its_name = self.row.named and old.get("name") == new.get("name")
        return compare(old, new, self.rules, delete_before_replace=keeps_its_name)

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        if old_outputs is not None:
            return {**old_outputs, **inputs}
        return unknown_where_missing(inputs, self.outputs_of_api() - {"id"})

    def create(self, call: Call, inputs: Properties) -> CreatedResource:
        details = self._details("Create", inputs)
        model = self._create_once(call, inputs, details)
        made = self.id_of(model, inputs)
        try:
            model = self._wait_ready(call, made, model, inputs)
            self.after_create(call, made, inputs)
        except ProviderError as error:
            raise PartialFailureError(made, self.shown(model, inputs), error.cause, error.remedy) from error
        return CreatedResource(made, self.shown(model, inputs))

    def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource | None:  # noqa: A002
        given = {**inputs, **self.parse_id(id)}
        model = self._get(call, id, {**outputs, **given})
        if model is None:
            return None
        real_id = self.id_of(model, given)
        live = self.shown(model, {**outputs, **given})
        return LiveResource(real_id, live, self._live_inputs(live, inputs))

    def update(self, call: Call, id: str, outputs: Properties, old: Properties, new: Properties) -> Properties:  # noqa: A002
        changed = changed_keys(compare(old, new, self.rules))
        if changed:
            self._update(call, id, {key: new.get(key) for key in changed}, new)
        model = self._get(call, id, new)
        if model is None:
            raise ProviderError(f"{call.name} no longer exists in the cloud.", "`pulumi refresh`, then `pulumi up`.")
        return self.shown(self._wait_ready(call, id, model, new), new)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        options = {
            option: inputs[key] for option, key in self.row.delete_options.items() if inputs.get(key) is not None
        }
        self._while_in_use(call, lambda: self._delete(id, {**outputs, **inputs}, options))
        self._wait_gone(call, id, {**outputs, **inputs})

    # -- the API's calls

    def call_path(self, id: str, inputs: Properties) -> list[str]:  # noqa: A002
        missing = [key for key in self.row.within if not inputs.get(key)]
        if missing:
            form = "/".join(
                f"{key}/<ocid>" for key in (*self.row.within, f"{self._stem[:1].lower()}{self._stem[1:]}Id")
            )
            raise ProviderError(
                f"The id `{id}` does not name its {' and '.join(missing)}.", f"Import it with an id of the form {form}."
            )
        return [*(inputs[key] for key in self.row.within), self.parse_id(id).get("id", id)]

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        """The properties in an id for `pulumi import` that is more than an OCID, such as `logGroupId/…/logId/…`."""
        parts = id.split("/")
        if not self.row.within or len(parts) != 2 * (len(self.row.within) + 1):
            return {}
        return {**dict(zip(self.row.within, parts[1::2], strict=False)), "id": parts[-1]}

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(model.id)

    def after_create(self, call: Call, id: str, inputs: Properties) -> None:  # noqa: A002
        """The steps after the creation that complete the resource."""

    def _operation(self, verb: str, more: str = "") -> Callable[..., Any]:
        operation: Callable[..., Any] = getattr(self.client, f"{verb}_{self.row.noun}{more}")
        return operation

    def _create_once(self, call: Call, inputs: Properties, details: Any) -> Any:
        """Creates the resource once, even if an earlier attempt was killed before it returned.

        The same inputs of the same resource give the same retry token, so the cloud answers with the resource that the
        earlier attempt created.
        """
        base = str(uuid.uuid4()) if call.anew else f"{call.urn}\n{canonical(inputs)}"
        try:
            return make_once(
                call, f"Create {call.name}", base, lambda token: self._create(call, inputs, details, token)
            )
        except ProviderError as error:
            if self.row.existing and getattr(error.__cause__, "code", None) in _TAKEN:
                raise ProviderError(error.cause, self._ways_out(call, inputs)) from error.__cause__
            raise

    def _ways_out(self, call: Call, inputs: Properties) -> str:
        name = inputs.get("name") or inputs.get("displayName")
        named = self.row.existing.format(name)
        return (
            f"To use the existing one, write `trainyard:{named}` in the stack file. To let this stack manage it: "
            f"`pulumi import {self.token} {call.name} {self.row.import_id.format(name)}`. Or choose another name."
        )

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        within = [inputs[key] for key in self.row.within]
        return self._operation("create")(*within, details, opc_retry_token=token).data

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        path = self.call_path(id, inputs)
        model = read_if_exists(call, f"Read {call.name}", lambda: self._operation("get")(*path))
        gone = getattr(model, "lifecycle_state", None) in self.row.gone
        return None if gone else model

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> None:  # noqa: A002
        """Makes all changes, or refuses: a change that the API cannot make must never appear as made."""
        path, served = self.call_path(id, new), self._back({**fields(self.row.service, f"Update{self._stem}Details")})
        wanted = {key: value for key, value in changed.items() if key not in self.row.extra}
        place = None if "compartmentId" in served else wanted.pop("compartmentId", None)
        wanted = {key: _or_empty(value, served[key][1]) if key in served else value for key, value in wanted.items()}
        if unserved := sorted(key for key, value in wanted.items() if key not in served or value is None):
            raise unchangeable_error(call, unserved)
        if place is not None:
            where = to_model(self.row.service, f"Change{self._stem}CompartmentDetails", {"compartmentId": place})
            self._write(call, f"Move {call.name}", self._operation("change", "_compartment"), *path, where)
        if wanted:
            self._write(call, f"Update {call.name}", self._operation("update"), *path, self._details("Update", wanted))

    def _write(self, call: Call, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        """Calls an operation that changes the resource, and waits until the change is complete."""
        return attempt(call, what, lambda: operation(*arguments))

    def _delete(self, id: str, inputs: Properties, options: Properties) -> None:  # noqa: A002
        self._operation("delete")(*self.call_path(id, inputs), **options)

    # -- waits

    def _wait_ready(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        pause, deadline = _FIRST_PAUSE, call.deadline(_SECONDS)
        while getattr(model, "lifecycle_state", None) not in {None, *self.row.ready}:
            state = model.lifecycle_state
            if state == "FAILED" or time.monotonic() > deadline:
                reason = getattr(model, "lifecycle_details", None) or "no reason given"
                raise ProviderError(f"{call.name} is {state}, not {' or '.join(sorted(self.row.ready))}: {reason}")
            call.report.status(f"{state}, waiting until {' or '.join(sorted(self.row.ready))}")
            call.stop.wait(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)
            model = self._get(call, id, inputs)
            if model is None:
                raise ProviderError(f"{call.name} was deleted before it was ready.")
        return model

    def _wait_gone(self, call: Call, id: str, inputs: Properties) -> None:  # noqa: A002
        pause, deadline = _FIRST_PAUSE, call.deadline(_SECONDS)
        while (model := self._get(call, id, inputs)) is not None and hasattr(model, "lifecycle_state"):
            if time.monotonic() > deadline:
                raise ProviderError(f"{call.name} is still {model.lifecycle_state}; its deletion takes too long.")
            call.report.status(f"{model.lifecycle_state}, waiting until it is gone")
            call.stop.wait(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    def _while_in_use(self, call: Call, operation: Callable[[], None]) -> None:
        """Repeats a deletion while the resource is still in use, for example by a run that has just ended."""
        started = time.monotonic()
        while True:
            try:
                return attempt(call, f"Delete {call.name}", operation)
            except ProviderError as error:
                cause = error.__cause__
                if cause is not None and is_gone(cause):
                    return None
                if getattr(cause, "code", None) not in {"Conflict", "IncorrectState"}:
                    raise
                if time.monotonic() - started > _SECONDS_IN_USE:
                    raise
                call.report.status(f"still in use: {getattr(cause, 'message', '')}")
            call.stop.wait(1.0)

    def _live_inputs(self, live: Properties, inputs: Properties) -> Properties:
        if inputs:
            return {
                key: project(live.get(key, value), value, key, self.rules.unordered) for key, value in inputs.items()
            }
        wanted = self.inputs_of_api()
        return {key: value for key, value in live.items() if key in wanted and value not in (None, {}, [])}


def unchangeable_error(call: Call, keys: Iterable[str]) -> ProviderError:
    named = ", ".join(f"`{key}`" for key in keys)
    return ProviderError(
        f"{call.name}: the local cloud cannot change {named} of an existing resource.",
        f"Restore the old value, or replace the resource: `pulumi up --replace '{call.urn}'`.",
    )


def _or_empty(value: Any, kind: str) -> Any:
    """Empties a list or a map that the program no longer sets: the API leaves absent fields unchanged."""
    if value is None and kind.startswith(("list[", "dict(")):
        return [] if kind.startswith("list[") else {}
    return value
