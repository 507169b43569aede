# SPDX-License-Identifier: Apache-2.0
"""The properties of an AWS type: their names, their values in Pulumi's form, and their validation."""

import difflib
import hashlib
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from components.aws.types.aws_resource_type import AwsResourceType, Change, pulumi_name_of_member
from components.aws.types.templates import fill_template, parts_of
from components.platform.calls import Call, InputFailure
from components.platform.values import Properties
from localcloud.aws.plugin.session import AwsSession, all_tags, visible_tags
from localcloud.aws.plugin.shapes import (
    MAPS,
    ParameterBuilder,
    in_form_of,
    member_of,
    put_at,
    search_path,
    shape_at,
    to_pulumi,
)
from localcloud.plugins.resource_table import TableResource, diff_rules_of_type
from provider.base.resource import CheckedInputs

# Every type has this property, except types of global services.
REGION = "region"
GLOBAL = frozenset({"iam"})


class AwsProperties(TableResource, ABC):
    """A type's row together with botocore's models. The only call of AWS here is for the account."""

    row: AwsResourceType
    _session: Callable[[], AwsSession]

    def __init__(self, token: str, row: AwsResourceType, session: Callable[[], AwsSession]) -> None:
        super().__init__(token, row, session)
        rules = diff_rules_of_type(token, MAPS)
        # If the program gives no region, it stays unchanged, for example after an import.
        self.rules = replace(
            rules, replace=rules.replace | self._regional, computed=rules.computed | self._regional | {"tagsAll"}
        )
        self.secret_outputs = row.secret_outputs

    # -- names

    @property
    def _regional(self) -> frozenset[str]:
        return frozenset() if self.row.service in GLOBAL else frozenset({REGION})

    def inputs_of_api(self) -> frozenset[str]:
        tagged = {"tagsAll"} if "tags" in self.row.inputs else set()
        return frozenset(self.row.inputs) | tagged | self._regional

    def outputs_of_api(self) -> frozenset[str]:
        return frozenset(self.row.outputs) | frozenset(self.row.computed_outputs) | self.inputs_of_api()

    @cached_property
    def _names_back(self) -> Mapping[str, str]:
        """`renamed` in reverse: the path of a member -> its Pulumi name."""
        back = {}
        for path, member in self.row.renamed.items():
            *above, name = path.split(".")
            members = [
                self.row.renamed.get(".".join(above[: n + 1]), part[:1].upper() + part[1:])
                for n, part in enumerate(above)
            ]
            back[".".join([*members, member])] = name
        return back

    def live(self, model: Properties) -> Properties:
        """The fields of a model, by their Pulumi names."""
        names = {member: name for name, member in self.row.model_paths.items() if member in model}
        at_paths = {name: search_path(path, model) for name, path in self.row.model_paths.items()}
        return {**to_pulumi(model, {**self._names_back, **names}), **to_pulumi(at_paths, self._names_back)}

    def outputs_of(self, model: Any, inputs: Properties) -> Properties:
        live = {name: value for name, value in self.live(model).items() if name in self.outputs_of_api()}
        if "tags" in self.row.inputs:
            live |= self._shown_tags(live.get("tags") or {}, inputs)
        if self._regional:
            live[REGION] = inputs.get(REGION) or self._session().region_name
        given = {name: value for name, value in inputs.items() if name != "__defaults"}
        live = {name: in_form_of(value, given.get(name)) for name, value in live.items() if value is not None}
        return {**given, **live, **self._computed({**given, **model, **live, "id": self.id_of(model, inputs)})}

    def _shown_tags(self, tags: Mapping[str, str], inputs: Properties) -> Properties:
        live, given = visible_tags(tags), inputs.get("tags") or {}
        defaults = self._session().default_tags
        own = {key: value for key, value in live.items() if defaults.get(key) != value or key in given}
        return {"tags": own if own or given else None, "tagsAll": live}

    def _computed(self, context: Properties) -> Properties:
        values = {**context, REGION: self.region(context)}
        values |= {"account": self._session().account} if self._needs_account else {}
        filled = {name: fill_template(template, values) for name, template in self.row.computed_outputs.items()}
        return {name: value for name, value in filled.items() if value is not None}

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(fill_template(self.row.create.id, {**inputs, **model}))

    def parse_id(self, id: str) -> Properties:  # noqa: A002
        parts = parts_of(self.row.create.id, id)
        return {name: value for name, value in parts.items() if name in self.inputs_of_api()}

    def state_of(self, model: Any) -> str | None:
        return search_path(self.row.state, model) if self.row.state else None

    def reason_of(self, model: Any) -> str:
        return str(search_path(self.row.state_reason, model) or "") if self.row.state_reason else ""

    # -- parameters

    def region(self, inputs: Mapping[str, Any]) -> str:
        given = inputs.get(REGION)
        return given if isinstance(given, str) else self._session().region_name

    def shape(self, operation: str) -> Any:
        service, _, name = operation.rpartition(":")
        return self._session().operation(service or self.row.service, name).input_shape

    def template_values(self, id: str, inputs: Mapping[str, Any]) -> Properties:  # noqa: A002
        """The values for the templates of a row."""
        account = {"account": self._session().account} if self._needs_account else {}
        return {**inputs, **self.parse_id(id), "id": id, REGION: self.region(inputs), **account}

    @cached_property
    def _needs_account(self) -> bool:
        """Whether a template of this row needs the account, which costs a call."""
        return "{account}" in repr(self.row)

    @property
    def holder(self) -> Any:
        """The shape in the creation's parameters that has the inputs."""
        shape = self.shape(self.row.create.operation)
        return shape.members[self.row.create.body] if self.row.create.body else shape

    def takes(self, shape: Any, name: str) -> bool:
        return name in self.row.inside or member_of(shape, name, self.row.renamed.get(name, "")) is not None

    def creation(self, builder: ParameterBuilder, inputs: Properties) -> Properties:
        """The parameters of the creation, from those inputs that no other call sets."""
        holder, shape = self.holder, self.shape(self.row.create.operation)
        later = {name for name in self._changed_by_calls() if not self.takes(holder, name)}
        own = {*self.row.extra, *later, "__defaults", "tagsAll", REGION, f"{self.row.named}Prefix", *self.row.inside}
        own |= {"tags"} if self.row.tagging else set()
        given = {name: value for name, value in inputs.items() if name not in own and value is not None}
        outside = {
            name: given.pop(name) for name in list(given) if self.row.create.body and not self.takes(holder, name)
        }
        made = builder.parameters(holder, given)
        for name, where in self.row.inside.items():
            if inputs.get(name) is not None:
                put_at(made, where, builder.parameters(shape_at(holder, where), inputs[name], name))
        return {**builder.parameters(shape, outside), self.row.create.body: made} if self.row.create.body else made

    def _changed_by_calls(self) -> set[str]:
        return {name for change in self.row.changes for name in change.inputs}

    def body_of(self, builder: ParameterBuilder, change: Change, given: Properties) -> Properties:
        shape = self.shape(change.operation)
        holder = shape.members[change.body] if change.body else shape
        if change.value:
            given = {name: {change.value: value} for name, value in given.items()}
        body = builder.parameters(holder, given)
        return {change.body: body} if change.body else dict(body)

    # -- before the update

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        checked = super().check(call, old, new)
        inputs, failures = checked.inputs, list(checked.failures)
        defaults = self._session().default_tags
        if defaults and "tags" in self.row.inputs:
            inputs["tagsAll"] = all_tags(defaults, inputs)
        return CheckedInputs(inputs, tuple(failures or self.validate_inputs(inputs)))

    def _refusal_of(self, key: str) -> str:
        near = difflib.get_close_matches(key, self.inputs_of_api(), 1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        return f"The local cloud's plugin does not support the input `{key}` of {self.token}.{hint}"

    def _made_name(self, call: Call, old: Properties, inputs: Properties) -> str:
        prefix = inputs.get(f"{self.row.named}Prefix")
        if not isinstance(prefix, str):
            return super()._made_name(call, old, inputs)[: self.row.longest_name]
        seed = hashlib.sha256(call.seed or call.urn.encode()).hexdigest()
        return str(old.get(self.row.named) or f"{prefix}{seed[:26]}")[: self.row.longest_name]

    def validate_inputs(self, inputs: Properties) -> list[InputFailure]:
        """Validates inputs by botocore's models of the creation, and of the other calls that set inputs."""
        builder = ParameterBuilder(self.row.renamed)
        made = {**dict.fromkeys(self.row.create.fixed), **self.creation(builder, inputs)}
        shape, body = self.shape(self.row.create.operation), self.row.create.body
        if body:
            lacking = [name for name in shape.members[body].required_members if name not in made[body]]
            builder.failures += [self._missing(name) for name in lacking]
        builder.failures += [self._missing(name) for name in shape.required_members if name not in made]
        for change in self.row.changes:
            wanted = {name: inputs[name] for name in change.inputs if inputs.get(name) is not None}
            builder.failures += self._validate_change(change, wanted) if wanted else []
        return list({failure.property: failure for failure in reversed(builder.failures)}.values())

    def _missing(self, member: str) -> InputFailure:
        names = {**self._names_back, **{where: name for name, where in self.row.model_paths.items()}}
        return InputFailure(
            names.get(member, pulumi_name_of_member(member)), f"{self.token} needs this property.", missing=True
        )

    def _validate_change(self, change: Change, wanted: Properties) -> list[InputFailure]:
        builder = ParameterBuilder({**self.row.renamed, **change.names})
        self.body_of(builder, change, wanted)
        member = f".{change.value}" if change.value else ""
        return [replace(failure, property=failure.property.removesuffix(member)) for failure in builder.failures]

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        outputs = super().preview(inputs, old_outputs)
        if old_outputs is None and self._regional:
            outputs[REGION] = inputs.get(REGION) or self._session().region_name
        return outputs
