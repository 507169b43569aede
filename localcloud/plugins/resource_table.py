# SPDX-License-Identifier: Apache-2.0
"""A resource type from a row: check, diff, create, read, update and delete, for any platform's API."""

from __future__ import annotations

import hashlib
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from components.platform.calls import Call, InputFailure, PartialFailureError, ProviderError
from components.platform.values import Diff, DiffRules, Properties, canonical_json, changed_keys, compare_inputs
from components.values.resource_types import PluginType, find_resource_type
from localcloud.plugins.engine import delete_old_remedy, note_deleted, recorded_ids, recorded_parent, remedy_commands
from provider.base.resource import CheckedInputs, CreatedResource, LiveResource, ProviderResource, unknown_where_missing

T = TypeVar("T")

_SECONDS = 1200.0  # the default of the real providers for nearly every type here
_SECONDS_IN_USE = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.05, 5.0, 1.5
_UNINTERESTING = frozenset({"__defaults", "id"})


def project_live_value(live: Any, desired: Any, path: str, unordered: frozenset[str]) -> Any:
    """The live value, reduced to the fields that the program sets, because fields that the cloud sets are not drift."""
    if isinstance(live, Mapping) and isinstance(desired, Mapping):
        return {
            key: project_live_value(live.get(key), item, f"{path}.{key}" if path else key, unordered)
            for key, item in desired.items()
        }
    if isinstance(live, list) and isinstance(desired, list):
        if path not in unordered:
            reduced = [
                project_live_value(one, other, path, unordered) for one, other in zip(live, desired, strict=False)
            ]
            return reduced + live[len(desired) :]
        left, matched = list(live), []
        for item in desired:
            twin = next((one for one in left if project_live_value(one, item, path, unordered) == item), None)
            if twin is not None:
                left.remove(twin)
                matched.append(item)
        return matched + left
    return desired if live is None and desired in ("", [], {}, None, False) else live


def diff_rules_of_type(token: str, maps: frozenset[str]) -> DiffRules:
    """The rules for changes of a type. `maps`: inputs whose keys users choose."""
    row = find_resource_type(token)
    if row is None:
        raise LookupError(f"no row describes {token}")
    unset = getattr(row, "unset", {})
    return DiffRules(row.replaced_by, row.computed, row.unordered, maps=maps, unset=unset, empty_is_unset=True)


def creation_seed(call: Call, inputs: Properties) -> str:
    """The seed of what identifies a creation: its retry token, or the tag that marks the attempt. A repeated attempt
    has the same seed, and so finds the resource of the first one."""
    if call.anew:
        return str(uuid.uuid4())
    return "\n".join([call.urn, canonical_json(inputs), *([call.instead_of] if call.instead_of else [])])


class NameTakenError(ProviderError):
    """The plugin itself noticed that the name is taken: the cloud did not refuse the creation."""


class TableResource(ProviderResource):
    """The engine's operations on a resource. Each platform implements the calls to its API."""

    def __init__(self, token: str, row: Any, session: Callable[[], Any]) -> None:
        self.row: PluginType = row
        self.token = token
        self._session = session

    # -- implemented by each platform

    @abstractmethod
    def inputs_of_api(self) -> frozenset[str]:
        """The Pulumi names of all inputs."""

    @abstractmethod
    def outputs_of_api(self) -> frozenset[str]: ...

    @abstractmethod
    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        """The outputs: the inputs, overlaid with the live values."""

    @abstractmethod
    def id_of(self, model: Any, inputs: Properties) -> str: ...

    @abstractmethod
    def state_of(self, model: Any) -> str | None:
        """The resource's lifecycle state; None if the type has none."""

    @abstractmethod
    def reason_of(self, model: Any) -> str:
        """Why the resource is in its state; empty if the cloud gives no reason."""

    @abstractmethod
    def _create_once(self, call: Call, inputs: Properties) -> tuple[Any, bool]:
        """Creates the resource once, even if an earlier attempt was killed before it returned. Returns the model, and
        whether it may have existed before."""

    @abstractmethod
    def _collides(self, error: BaseException) -> bool:
        """Whether a creation was refused because something exists already, such as a name or addresses."""

    @abstractmethod
    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        """The model of the resource; None if it does not exist."""

    @abstractmethod
    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> Any:  # noqa: A002
        """Makes all changes. Raises if the API cannot make one of them, or else Pulumi would record it as made. Returns
        the model in the API's answer; None if the resource has to be read again."""

    @abstractmethod
    def _delete(self, id: str, inputs: Properties) -> None: ...  # noqa: A002

    @abstractmethod
    def _attempt(self, call: Call, what: str, operation: Callable[[], T]) -> T:
        """Calls the cloud. Retries if that may help, and turns refusals into messages for people."""

    @abstractmethod
    def _is_gone(self, error: BaseException) -> bool: ...

    @abstractmethod
    def _in_use(self, error: BaseException) -> str | None:
        """Why the resource cannot be deleted yet, if a retry may succeed soon; None for any other error."""

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        """The properties in an id for `pulumi import`."""
        return {}

    def replaced_too(self, old: Properties, new: Properties) -> frozenset[str]:
        """Inputs whose change replaces the resource in this case, besides those of its row."""
        return frozenset()

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        """The steps after the creation that complete the resource. Returns the model after them."""
        return model

    # -- the engine's calls

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        inputs = {**self.row.defaults, **new}
        if self.row.named and inputs.get(self.row.named) is None:
            inputs[self.row.named] = self._made_name(call, old, inputs)
        accepted = self.inputs_of_api() | _UNINTERESTING
        unknown = sorted(set(inputs) - accepted)
        return CheckedInputs(inputs, tuple(InputFailure(key, self._refusal_of(key)) for key in unknown))

    def _refusal_of(self, key: str) -> str:
        return f"{self.token} has no input `{key}`."

    def _made_name(self, call: Call, old: Properties, inputs: Properties) -> str:
        seed = call.seed or call.urn.encode()
        return old.get(self.row.named) or f"{call.name}-{hashlib.sha256(seed).hexdigest()[:7]}"

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        keeps_its_name = bool(self.row.named) and old.get(self.row.named) == new.get(self.row.named)
        more = self.replaced_too(old, new)
        rules = replace(self.rules, replace=self.rules.replace | more) if more else self.rules
        return compare_inputs(old, new, rules, delete_before_replace=keeps_its_name)

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        if old_outputs is not None:
            return {**old_outputs, **inputs}
        return unknown_where_missing(inputs, self.outputs_of_api() - {"id"})

    def create(self, call: Call, inputs: Properties) -> CreatedResource:
        model = self._create_new(call, inputs)
        made = self.id_of(model, inputs)
        try:
            model = self._wait_ready(call, made, model, inputs)
            model = self.after_create(call, made, model, inputs)
        except ProviderError as error:
            raise PartialFailureError(made, self.outputs_of(model, inputs), error.cause, error.remedy) from error
        return CreatedResource(made, self.outputs_of(model, inputs))

    def _create_new(self, call: Call, inputs: Properties) -> Any:
        """Creates the resource. Adopts one that a killed attempt made, but never one that the engine is replacing."""
        try:
            model, existed = self._create_once(call, inputs)
            made, old = self.id_of(model, inputs), recorded_ids(call.urn) if existed else frozenset()
            if made not in old:
                return model
            model, _ = self._create_once(replace(call, instead_of=made), inputs)
        except ProviderError as error:
            collides = isinstance(error, NameTakenError) or (error.__cause__ and self._collides(error.__cause__))
            if not collides or not recorded_ids(call.urn):
                raise
            raise ProviderError(error.cause, delete_old_remedy(call)) from error.__cause__
        if self.id_of(model, inputs) in old:
            raise ProviderError(f"{call.name}: there can be only one {made}.", delete_old_remedy(call))
        return model

    def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource | None:  # noqa: A002
        given = {**inputs, **self.parse_id(id)}
        model = self._get(call, id, {**outputs, **given})
        if model is None:
            return None
        real_id = self.id_of(model, given)
        live = self.outputs_of(model, {**outputs, **given})
        return LiveResource(real_id, live, self._live_inputs(live, inputs))

    def update(self, call: Call, id: str, outputs: Properties, old: Properties, new: Properties) -> Properties:  # noqa: A002
        changed = changed_keys(compare_inputs(old, new, self.rules).changes)
        model = self._update(call, id, {key: new.get(key) for key in changed}, new) if changed else None
        model = self._get(call, id, new) if model is None else model
        if model is None:
            raise ProviderError(f"{call.name} no longer exists in the cloud.", "`pulumi refresh`, then `pulumi up`.")
        return self.outputs_of(self._wait_ready(call, id, model, new), new)

    def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
        self._delete_and_wait(call, id, {**outputs, **inputs})
        note_deleted(call.urn, id)

    def _delete_and_wait(self, call: Call, id: str, known: Properties) -> None:  # noqa: A002
        self._while_in_use(call, lambda: self._delete(id, known))
        self._wait_gone(call, id, known)

    def _live_inputs(self, live: Properties, inputs: Properties) -> Properties:
        if inputs:
            return {
                key: project_live_value(live.get(key, value), value, key, self.rules.unordered)
                for key, value in inputs.items()
            }
        wanted = self.inputs_of_api()
        return {key: value for key, value in live.items() if key in wanted and value not in (None, {}, [])}

    def _name_taken_remedies(self, call: Call, name: object, holder: str) -> str:
        """The remedies if the name is taken. `holder`: the id of the resource that has it."""
        above = recorded_parent(call.urn)
        parent = ("--parent", f"parent={above}") if above else ()
        command = remedy_commands(call.urn, "import", self.token, call.name, holder, *parent)
        return (
            f"To use the existing one, write `trainyard:{self.row.existing.format(name)}` in the stack file. To let "
            f"this stack manage it: {command}. Or choose another name."
        )

    # -- waits

    def _wait_ready(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        pause, deadline = _FIRST_PAUSE, call.deadline(_SECONDS)
        while (state := self.state_of(model)) not in {None, *self.row.ready}:
            if state in self.row.failed or time.monotonic() > deadline:
                reason = self.reason_of(model) or "no reason given"
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
        while (model := self._get(call, id, inputs)) is not None and (state := self.state_of(model)) is not None:
            if time.monotonic() > deadline:
                raise ProviderError(f"{call.name} is still {state}; its deletion takes too long.")
            call.report.status(f"{state}, waiting until it is gone")
            call.stop.wait(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE)

    def _while_in_use(self, call: Call, operation: Callable[[], None]) -> None:
        """Retries a deletion while the resource is still in use, for example by a run that has just ended."""
        started = time.monotonic()
        while True:
            try:
                return self._attempt(call, f"Delete {call.name}", operation)
            except ProviderError as error:
                cause = error.__cause__
                if cause is not None and self._is_gone(cause):
                    return None
                in_use = None if cause is None else self._in_use(cause)
                if in_use is None or time.monotonic() - started > _SECONDS_IN_USE:
                    raise
                call.report.status(f"still in use: {in_use}")
            call.stop.wait(1.0)
