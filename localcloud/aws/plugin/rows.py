# SPDX-License-Identifier: Apache-2.0
"""The fields of a row of the AWS table, and functions that make common rows. The rows are in
localcloud/aws/plugin/types.

Parameters are templates: `{vpcId}` is an input, an output or a field of the live model, `{id}` is the resource's id,
`{region}` and `{account}` are its location. If a text is one template and nothing else, the value keeps its type.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.platform.values import Properties
from components.values.resource_types import PluginType

# A name in a template.
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Read:
    """A call that reads a part of the live model. The first one of a row says whether the resource exists."""

    operation: str
    parameters: Mapping[str, Any]
    # The part of the response that becomes fields of the model: a JMESPath with templates.
    at: str = "@"
    # Error codes that mean that it does not exist.
    missing: frozenset[str] = frozenset()
    # A field of the model or an input. Without a value of it, the call is skipped.
    when: str = ""


@dataclass(frozen=True)
class Change:
    """A call that sets inputs at an update, and after a creation that cannot set them."""

    operation: str
    inputs: tuple[str, ...]
    parameters: Mapping[str, Any]
    body: str = ""  # the member that holds the inputs
    value: str = ""  # the member below an input's member that holds its value
    together: bool = False  # sends all inputs, also unchanged ones
    names: Mapping[str, str] = field(default_factory=dict)  # input -> member, if this call has another name for it
    undo: str = ""  # the operation that removes the value
    undo_with: Mapping[str, Any] | None = None  # parameters of `undo`, if they differ
    # The old value must be removed before a new one is set, and before the deletion.
    exclusive: bool = False


@dataclass(frozen=True)
class Added:
    """A list input. One call adds and removes elements."""

    operation: str
    input: str
    parameters: Mapping[str, Any]
    add: str
    remove: str


@dataclass(frozen=True)
class Tagging:
    tag: str
    untag: str
    parameters: Mapping[str, Any]
    keys: str = "TagKeys"
    tags: str = "Tags"


@dataclass(frozen=True, kw_only=True)
class AwsRow(PluginType):
    service: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    # The operation that creates the resource, and the part of its response that becomes the model.
    create: str
    created: str = "@"
    # Parameters of the creation that are not inputs, and the member that holds the inputs.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    id: str
    reads: tuple[Read, ...]
    delete: str
    delete_with: Mapping[str, Any]
    # Calls of the real provider before a deletion.
    before_delete: tuple[Read, ...] = ()
    changes: tuple[Change, ...] = ()
    lists: tuple[Added, ...] = ()
    tagging: Tagging | None = None
    # The resource type in EC2's tag specifications.
    kind: str = ""
    # Pulumi path -> the API's member, where the names differ.
    renamed: Mapping[str, str] = field(default_factory=dict)
    # Properties that are nested in the API: their path in the creation, and their JMESPath in the model.
    inside: Mapping[str, str] = field(default_factory=dict)
    model_paths: Mapping[str, str] = field(default_factory=dict)
    # Input -> the value to set when the program no longer gives it.
    unset: Mapping[str, Any] = field(default_factory=dict)
    # Output -> the template that computes it.
    computed: Mapping[str, str] = field(default_factory=dict)
    # The JMESPath of the state.
    state: str = ""
    state_reason: str = ""
    # AWS's limit for the length of a name, for generated names.
    longest_name: int = 64
    # Error codes that mean that the name is taken, and that the resource is in use.
    taken_codes: frozenset[str] = frozenset()
    in_use_codes: frozenset[str] = frozenset({"DependencyViolation", "DeleteConflict"})
    secret_outputs: frozenset[str] = frozenset()


def unused_read(operation: str, parameters: Mapping[str, Any], missing: str = "", when: str = "") -> Read:
    """A call whose response is not needed here. The real provider makes it, so deployers need a permission for it."""
    return Read(operation, parameters, "`{}`", frozenset(missing.split()), when)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def names_in(template: str) -> list[str]:
    return _NAME.findall(template)


def fill(template: Any, context: Mapping[str, Any]) -> Any:
    """Fills in a template. None if a name in it has no value."""
    if isinstance(template, Mapping):
        filled = {key: fill(item, context) for key, item in template.items()}
        return {key: item for key, item in filled.items() if item is not None}
    if isinstance(template, list):
        return [fill(item, context) for item in template]
    if not isinstance(template, str):
        return template
    names = _NAME.findall(template)
    if any(context.get(name) is None for name in names):
        return None
    if template == f"{{{names[0]}}}" if names else False:
        return context[names[0]]
    return _NAME.sub(lambda match: str(context[match[1]]), template)


def parts_of(template: str, text: str) -> Properties:
    """The reverse of `fill`: the values of a template's names in `text`."""
    pattern = "".join(
        f"(?P<{part}>.+{'?' if index < template.count('{') * 2 - 1 else ''})" if index % 2 else re.escape(part)
        for index, part in enumerate(_NAME.split(template))
    )
    match = re.fullmatch(pattern, text)
    return match.groupdict() if match else {}


def by_field(name: str) -> Tagging:
    """Tags of an EC2 resource whose id is in this field."""
    return Tagging("CreateTags", "DeleteTags", {"Resources": [f"{{{name}}}"]}, keys="Tags")


def ec2(inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    return AwsRow(service="ec2", inputs=words(inputs), outputs=words(outputs), **more)


def tagged(kind: str, inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    """A row of an EC2 type with tags. `kind`: EC2's resource type in tag specifications."""
    return ec2(f"{inputs} tags", f"{outputs} tagsAll", kind=kind, **{"tagging": by_field("id"), **more})


def read_by_id(operation: str, by: str, at: str, **more: Any) -> Read:
    return Read(operation, {by: ["{id}"]}, at, **more)


def read_by_filter(operation: str, at: str, filters: Mapping[str, str]) -> Read:
    return Read(operation, {"Filters": [{"Name": name, "Values": [value]} for name, value in filters.items()]}, at)


def arn(kind: str) -> dict[str, str]:
    return {"arn": f"arn:aws:ec2:{{region}}:{{account}}:{kind}/{{id}}"}
