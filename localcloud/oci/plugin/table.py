# SPDX-License-Identifier: Apache-2.0
"""A resource type from a row, with the calls that most of OCI's types have: `create_vcn`, `get_vcn`, `update_vcn`, …"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from components.oci.client.calls import call_oci, is_missing_in_oci, make_once, read_from_oci_if_exists
from components.oci.client.session import Session
from components.oci.types.oci_resource_type import OciResourceType
from components.platform.calls import Call, ProviderError
from components.platform.values import Properties
from localcloud.oci.plugin.convert import from_model, pulumi_fields, to_model
from localcloud.plugins.engine import unchangeable_error
from localcloud.plugins.resource_table import TableResource, creation_seed, diff_rules_of_type

T = TypeVar("T")

_TAKEN = frozenset({"BucketAlreadyExists", "NotAuthorizedOrResourceAlreadyExists"})
# Inputs whose keys users choose.
MAPS = frozenset({
    "definedTags", "environmentVariables", "freeformTags", "metadata", "parameters", "securityAttributes"
})  # fmt: skip


class OciResource(TableResource):
    """The common behaviour. Types that differ have a subclass in localcloud.oci.plugin.behaviours."""

    row: OciResourceType

    def __init__(self, token: str, row: OciResourceType, session: Callable[[], Session]) -> None:
        super().__init__(token, row, session)
        self.rules = diff_rules_of_type(token, MAPS)

    # -- names and models

    @property
    def client(self) -> Any:
        return self._session().client(self.row.service)

    def inputs_of_api(self) -> frozenset[str]:
        created = pulumi_fields(self.row.service, f"Create{self.row.stem}Details")
        changed = pulumi_fields(self.row.service, f"Update{self.row.stem}Details")
        api = self._pulumi_names(dict.fromkeys((*created, *changed)))
        return frozenset(api) | self.row.extra | frozenset(self.row.within)

    def outputs_of_api(self) -> frozenset[str]:
        return frozenset(self._pulumi_names(dict.fromkeys(pulumi_fields(self.row.service, self.row.model))))

    def _details(self, kind: str, inputs: Properties) -> Any:
        renamed = {self.row.renamed.get(key, key): value for key, value in inputs.items()}
        return to_model(self.row.service, f"{kind}{self.row.stem}Details", self.to_api(renamed))

    def _pulumi_names(self, properties: Properties) -> Properties:
        names = {api: name for name, api in self.row.renamed.items()}
        return {names.get(key, key): value for key, value in properties.items()}

    def to_api(self, inputs: Properties) -> Properties:
        return inputs

    def from_api(self, outputs: Properties) -> Properties:
        return outputs

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        shown = {**self.row.empty, **inputs, **self._pulumi_names(self.from_api(from_model(model)))}
        if not self.row.shows_system_tags:
            shown.pop("systemTags", None)
        return shown

    # -- the API's calls

    def call_path(self, id: str, inputs: Properties) -> list[str]:  # noqa: A002
        missing = [key for key in self.row.within if not inputs.get(key)]
        if missing:
            form = "/".join(
                f"{key}/<ocid>" for key in (*self.row.within, f"{self.row.stem[:1].lower()}{self.row.stem[1:]}Id")
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

    def state_of(self, model: Any) -> str | None:
        state: str | None = getattr(model, "lifecycle_state", None)
        return state

    def reason_of(self, model: Any) -> str:
        return getattr(model, "lifecycle_details", None) or ""

    def _operation(self, verb: str, more: str = "") -> Callable[..., Any]:
        operation: Callable[..., Any] = getattr(self.client, f"{verb}_{self.row.noun}{more}")
        return operation

    def _create_once(self, call: Call, inputs: Properties) -> tuple[Any, bool]:
        """Creates the resource. The retry token follows from the resource and its inputs, so OCI returns the
        resource of a killed attempt."""
        began = datetime.now(UTC)
        existed = self._exists(inputs)
        details = self._details("Create", inputs)
        seed = creation_seed(call, inputs)
        try:
            model = make_once(
                call, f"Create {call.name}", seed, lambda token: self._create(call, inputs, details, token)
            )
        except ProviderError as error:
            if self.row.existing and getattr(error.__cause__, "code", None) in _TAKEN:
                holder = self._id_of_name(call, inputs) or "OCID"
                raise ProviderError(
                    error.cause, self._name_taken_remedies(call, _name_input(inputs), holder)
                ) from error.__cause__
            raise
        made = getattr(model, "time_created", None)
        return model, existed or (made is not None and made < began)

    def _id_of_name(self, call: Call, inputs: Properties) -> str:
        """The import id of the existing resource with the same name; empty if the caller cannot see it."""
        where = [inputs[key] for key in self.row.within] or [inputs["compartmentId"]]
        key = "name" if "name" in inputs else "display_name"
        listing = getattr(self.client, self.row.list_operation)
        answer = call_oci(
            call, f"Look for {_name_input(inputs)}", lambda: listing(*where, **{key: _name_input(inputs)})
        ).data
        rows = [one.id for one in getattr(answer, "items", answer) if one.lifecycle_state not in self.row.gone]
        path = "".join(f"{key}/{inputs[key]}/" for key in self.row.within)
        own = f"{self.row.stem[:1].lower()}{self.row.stem[1:]}Id/" if path else ""
        return f"{path}{own}{rows[0]}" if len(rows) == 1 else ""

    def _exists(self, inputs: Properties) -> bool:
        """Whether a creation would overwrite an existing resource. For most types of OCI it would not."""
        return False

    def _collides(self, error: BaseException) -> bool:
        refused = getattr(error, "status", None)
        return refused == 409 or (refused == 400 and "overlap" in str(getattr(error, "message", "")))

    def _create(self, call: Call, inputs: Properties, details: Any, token: str) -> Any:
        within = [inputs[key] for key in self.row.within]
        answer = self._operation("create")(*within, details, opc_retry_token=token)
        if not self.row.entity:
            return answer.data
        # Only the work request names the new resource.
        return self._get(call, wait_for_work_request(call, self.client, answer, self.row.entity, "CREATED"), inputs)

    def _get(self, call: Call, id: str, inputs: Properties) -> Any:  # noqa: A002
        path = self.call_path(id, inputs)
        model = read_from_oci_if_exists(call, f"Read {call.name}", lambda: self._operation("get")(*path))
        return None if self.state_of(model) in self.row.gone else model

    def after_create(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        """Reads the created resource, ready or not. The calls are those of the type's row."""
        created = self._get(call, id, inputs)
        if created is None:
            raise ProviderError(f"{call.name} was deleted before it was ready.")
        if (state := self.state_of(created)) not in {None, *self.row.ready}:
            raise ProviderError(
                f"{call.name} is {state}: after its creation it must be {' or '.join(sorted(self.row.ready))}."
            )
        return created

    def _wait_ready(self, call: Call, id: str, model: Any, inputs: Properties) -> Any:  # noqa: A002
        """Waits until a change is complete. An update may end in another state than a creation, such as INACTIVE."""
        state = self.state_of(model)
        is_busy = state is None or state.endswith("ING") or state in self.row.failed
        return super()._wait_ready(call, id, model, inputs) if is_busy else model

    def _update(self, call: Call, id: str, changed: Properties, new: Properties) -> Any:  # noqa: A002
        path = self.call_path(id, new)
        served = self._pulumi_names({**pulumi_fields(self.row.service, f"Update{self.row.stem}Details")})
        wanted = {key: value for key, value in changed.items() if key not in self.row.extra}
        compartment = None if "compartmentId" in served else wanted.pop("compartmentId", None)
        # Lists and maps that the program no longer sets are emptied: the API leaves absent fields unchanged.
        for key in (key for key, value in wanted.items() if value is None and key in served):
            if served[key][1].startswith(("list[", "dict(")):
                wanted[key] = [] if served[key][1].startswith("list[") else {}
        if unserved := sorted(key for key, value in wanted.items() if key not in served or value is None):
            raise unchangeable_error(call, unserved)
        if compartment is not None:
            where = to_model(
                self.row.service, f"Change{self.row.stem}CompartmentDetails", {"compartmentId": compartment}
            )
            self._write(call, f"Move {call.name}", self._operation("change", "_compartment"), *path, where)
            if self.row.updates_after_move:
                wanted = {key: value for key, value in new.items() if key in served and value is not None} | wanted
        if not wanted:
            return None
        answer = self._write(
            call, f"Update {call.name}", self._operation("update"), *path, self._details("Update", wanted)
        )
        return getattr(answer, "data", None)

    def _write(self, call: Call, what: str, operation: Callable[..., Any], *arguments: Any) -> Any:
        """Calls an operation that changes the resource, and waits until the change is complete."""
        answer, is_move = call_oci(call, what, lambda: operation(*arguments)), operation.__name__.startswith("change_")
        if not self.row.entity or (is_move and not self.row.waits_for_move):
            return answer
        action = "RELATED" if is_move else "UPDATED"
        return wait_for_work_request(call, self.client, answer, self.row.entity, action)

    def _delete(self, id: str, inputs: Properties) -> None:  # noqa: A002
        given = {option: inputs.get(key) for option, key in self.row.delete_options.items()}
        options = {option: value for option, value in given.items() if value is not None}
        self._operation("delete")(*self.call_path(id, inputs), **options)

    def _attempt(self, call: Call, what: str, operation: Callable[[], T]) -> T:
        return call_oci(call, what, operation)

    def _is_gone(self, error: BaseException) -> bool:
        return is_missing_in_oci(error)

    def _in_use(self, error: BaseException) -> str | None:
        in_use = getattr(error, "code", None) in {"Conflict", "IncorrectState"}
        return str(getattr(error, "message", "")) if in_use else None


def _name_input(inputs: Properties) -> object:
    return inputs.get("name") or inputs.get("displayName")


_SECONDS = 300.0


def wait_for_work_request(call: Call, client: Any, answer: Any, entity: str, action: str) -> str:
    """Waits for the answer's work request, and returns the OCID of its resource.

    Like Oracle's provider, it fails if the work request does not have the entity with this action, or IN_PROGRESS.
    """
    request_id = answer.headers["opc-work-request-id"]
    pause, deadline = 0.05, call.deadline(_SECONDS)
    while True:
        request = call_oci(call, "Read the work request", lambda: client.get_work_request(request_id)).data
        if request.status == "SUCCEEDED":
            actions = (action, "IN_PROGRESS")
            affected = [each for each in request.resources if entity in each.entity_type.lower()]
            if found := [str(each.identifier) for each in affected if each.action_type in actions]:
                return found[0]
            raise ProviderError(
                f"{call.name}: its work request {request.id} names no {entity} that is {' or '.join(actions)}."
            )
        if request.status in {"FAILED", "CANCELED"} or time.monotonic() > deadline:
            errors = call_oci(call, "Read the work request", lambda: client.list_work_request_errors(request_id)).data
            reasons = "; ".join(error.message for error in errors) or "no reason given"
            raise ProviderError(f"{call.name}: its work request is {request.status}: {reasons}")
        call.report.status(f"work request {request.status}, {request.percent_complete or 0:.0f} %")
        call.stop.wait(pause)
        pause = min(pause * 1.5, 5.0)
