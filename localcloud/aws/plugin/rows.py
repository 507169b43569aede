# SPDX-License-Identifier: Apache-2.0
"""The fields of a row of the AWS table. The rows are in localcloud/aws/plugin/types.

Parameters are templates: `{vpcId}` is an input, an output or a field of the live model, `{id}` is the resource's id,
`{region}` and `{account}` are its location. A value that consists of one template only keeps its type.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.platform.values import Properties
from localcloud.plugins.table import TypeRow

# A name in a template.
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Read:
    """A call that reads a part of the live state. The first one of a row decides whether the resource exists."""

    operation: str
    parameters: Mapping[str, Any]
    # The part of the answer that becomes fields of the model: a JMESPath, and a template.
    at: str = "@"
    # Codes that mean: there is none.
    missing: frozenset[str] = frozenset()
    # A field of the model or an input. If it has no value, the call is not made.
    when: str = ""


@dataclass(frozen=True)
class Change:
    """A call that sets inputs: after a creation that does not take them, and at an update."""

    operation: str
    inputs: tuple[str, ...]
    parameters: Mapping[str, Any]
    body: str = ""  # the member that holds the inputs
    value: str = ""  # the member inside an input's own member that holds its value
    together: bool = False  # sends all of its inputs, also those that did not change
    names: Mapping[str, str] = field(default_factory=dict)  # input -> member, where this call has its own name
    undo: str = ""  # the operation that removes the value
    undo_with: Mapping[str, Any] | None = None  # its parameters, if they differ
    # The old value must be removed before a new one is set, and before the resource is deleted.
    exclusive: bool = False


@dataclass(frozen=True)
class Added:
    """A list whose elements are added and removed by one call."""

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
class AwsRow(TypeRow):
    service: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    # The operation that creates it, and the part of the answer that becomes fields of the model.
    create: str
    created: str = "@"
    # Parameters of the creation that do not come from inputs, and the member that holds the inputs.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    id: str
    reads: tuple[Read, ...]
    delete: str
    delete_with: Mapping[str, Any]
    # Calls before a deletion that the real provider makes.
    before_delete: tuple[Read, ...] = ()
    changes: tuple[Change, ...] = ()
    lists: tuple[Added, ...] = ()
    tagging: Tagging | None = None
    # EC2's name of the type in tag specifications.
    kind: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    # Properties that are nested in the API: their path in the creation, and (a JMESPath) in the model.
    inside: Mapping[str, str] = field(default_factory=dict)
    model_paths: Mapping[str, str] = field(default_factory=dict)
    # The values of inputs that the program no longer gives.
    unset: Mapping[str, Any] = field(default_factory=dict)
    # Outputs that are computed from others, as templates.
    computed: Mapping[str, str] = field(default_factory=dict)
    # The field with the state, as a JMESPath.
    state: str = ""
    state_reason: str = ""
    # The longest name that AWS takes, for generated names.
    longest_name: int = 64
    # Error codes that mean that the name is taken, or that the resource is still in use.
    taken_codes: frozenset[str] = frozenset()
    in_use_codes: frozenset[str] = frozenset({"DependencyViolation", "DeleteConflict"})
    secret_outputs: frozenset[str] = frozenset()


def unused_read(operation: str, parameters: Mapping[str, Any], missing: str = "", when: str = "") -> Read:
    """A call whose answer is not needed here. The real provider makes it, so deployers need the permission for it."""
    return Read(operation, parameters, "`{}`", frozenset(missing.split()), when)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def names_in(template: str) -> list[str]:
    return _NAME.findall(template)


def fill(template: Any, context: Mapping[str, Any]) -> Any:
    """The template with its names filled in. None if a name has no value."""
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
    """Reads the values of a template's names from `text`, which was made from the template."""
    pattern = "".join(
        f"(?P<{part}>.+{'?' if index < template.count('{') * 2 - 1 else ''})" if index % 2 else re.escape(part)
        for index, part in enumerate(_NAME.split(template))
    )
    match = re.fullmatch(pattern, text)
    return match.groupdict() if match else {}


def by_field(name: str) -> Tagging:
    """Tags of a resource whose id is in this field."""
    return Tagging("CreateTags", "DeleteTags", {"Resources": [f"{{{name}}}"]}, keys="Tags")


def ec2(inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    return AwsRow(service="ec2", inputs=words(inputs), outputs=words(outputs), **more)


def tagged(kind: str, inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    """A type with tags. `kind` is EC2's name of it."""
    return ec2(f"{inputs} tags", f"{outputs} tagsAll", kind=kind, **{"tagging": by_field("id"), **more})


def read_by_id(operation: str, by: str, at: str, **more: Any) -> Read:
    return Read(operation, {by: ["{id}"]}, at, **more)


def read_by_filter(operation: str, at: str, filters: Mapping[str, str]) -> Read:
    return Read(operation, {"Filters": [{"Name": name, "Values": [value]} for name, value in filters.items()]}, at)


def arn(kind: str) -> dict[str, str]:
    return {"arn": f"arn:aws:ec2:{{region}}:{{account}}:{kind}/{{id}}"}
