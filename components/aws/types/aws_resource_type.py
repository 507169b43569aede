# SPDX-License-Identifier: Apache-2.0
"""The fields of a row of an AWS type, and functions that make common rows.

Parameters are templates: `{vpcId}` is an input, an output or a field of the live model, `{id}` is the resource's id,
`{region}` and `{account}` are its location. If a text is one template and nothing else, the value keeps its type.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from components.values.resource_types import PluginType, ResourceType

# The policy pack imports these rows before its first verdict. Parts of a row are tuples, as a dataclass takes six times
# as long.
NOTHING: Mapping[str, Any] = MappingProxyType({})
# The tag with the attempt that created a resource. The local plugin sets it, and hides it from programs.
ATTEMPT_TAG = "trainyard-local:attempt"
_ACRONYM = re.compile(r"([A-Z])([A-Z]+)(?=[A-Z][a-z]|\d|$)")


class Read(NamedTuple):
    """A call that reads a part of the live model. The first one of a row says whether the resource exists."""

    operation: str
    parameters: Mapping[str, Any]
    # The part of the response that becomes fields of the model: a JMESPath with templates.
    at: str = "@"
    # Error codes that mean that it does not exist, as words.
    missing: str = ""
    # A field of the model or an input. Without a value of it, the call is skipped.
    when: str = ""
    # The input or condition that leads to this call, by its name in `[deployer]` of aws_dl1_access.toml. Empty if each
    # read makes the call.
    only_for: str = ""


class Creation(NamedTuple):
    operation: str
    id: str  # a template
    # The part of the response that becomes the model.
    created: str = "@"
    # The member that holds the inputs, and parameters that are not inputs.
    body: str = ""
    fixed: Mapping[str, Any] = NOTHING


class Deletion(NamedTuple):
    operation: str  # empty if the type has none of its own
    parameters: Mapping[str, Any]
    # Calls of the real provider before it.
    before: tuple[Read, ...] = ()


class Change(NamedTuple):
    """A call that sets inputs at an update, and after a creation that cannot set them."""

    operation: str
    inputs: tuple[str, ...]
    parameters: Mapping[str, Any]
    body: str = ""  # the member that holds the inputs
    value: str = ""  # the member below an input's member that holds its value
    together: bool = False  # sends all inputs, also unchanged ones
    names: Mapping[str, str] = NOTHING  # input -> member, if this call has another name for it
    undo: str = ""  # the operation that removes the value
    undo_with: Mapping[str, Any] | None = None  # parameters of `undo`, if they differ
    undo_only_for: str = ""  # the condition for `undo`, as in `Read.only_for`
    # The old value must be removed before a new one is set, and before the deletion.
    exclusive: bool = False


class ListChange(NamedTuple):
    """A list input. One call adds and removes elements."""

    operation: str
    input: str
    parameters: Mapping[str, Any]
    add: str
    remove: str


class Tagging(NamedTuple):
    tag: str
    untag: str
    parameters: Mapping[str, Any]
    keys: str = "TagKeys"
    tags: str = "Tags"


class LiveState(NamedTuple):
    """How a drift finds the current resource: by the first read of its row, or by `read`."""

    # The inputs that are compared, as words.
    compared: str = ""
    # The resource, for those who may not read it: a template.
    what: str = ""
    # EC2 lists its resources: by this filter, such as `vpc-id`, for their ids or their names.
    filter: str = ""
    # A policy that others may have put on it: the type that declares one, and the call that reads it.
    policy_type: str = ""
    policy: Read | None = None
    # The call, where it is not the row's first one.
    read: Read | None = None
    # The call for the tags, where they are not in the response.
    tags: Read | None = None


class RealProvider(NamedTuple):
    """What the real provider does beside the calls of the row. Calls and actions are words in a text.

    `source` is a file below internal/service of hashicorp/terraform-provider-aws, which pulumi-aws wraps. Each was read
    at 5.52; what differs in the 6.x that pulumi-aws 7 wraps says so. `python -m tests.support.provider_source PATH`
    reads the sources again, and names the calls that a row lacks."""

    source: str
    # Further calls, by phase (`create`, `read`, `delete`), input, or a condition, as in `Read.only_for`.
    calls: Mapping[str, str] = NOTHING
    # Actions that AWS wants beside those of the calls, by the same names.
    actions: Mapping[str, str] = NOTHING
    # Calls that only older providers make, by phase or input.
    before: Mapping[str, str] = NOTHING
    # Why none of our inputs leads to a call in the source -> these calls.
    unreached: Mapping[str, str] = NOTHING
    # Calls that only the local plugin makes, to adopt what a killed attempt has made.
    stand_in: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class AwsResourceType(ResourceType, PluginType):
    """A type that the local plugin serves too. Such a row is all that is known of the type."""

    service: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    create: Creation
    reads: tuple[Read, ...]
    delete: Deletion
    changes: tuple[Change, ...] = ()
    lists: tuple[ListChange, ...] = ()
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
    computed_outputs: Mapping[str, str] = field(default_factory=dict)
    # The JMESPath of the state.
    state: str = ""
    state_reason: str = ""
    # AWS's limit for the length of a name, for generated names.
    longest_name: int = 64
    # Error codes that mean that the name is taken, and that the resource is in use.
    taken_codes: frozenset[str] = frozenset()
    in_use_codes: frozenset[str] = frozenset({"DependencyViolation", "DeleteConflict"})
    secret_outputs: frozenset[str] = frozenset()
    # How a drift reads it. Some types have further steps in components/aws/client.
    live: LiveState | None = None
    # Service -> ARNs of a resource, as words. A policy of others that names one of them matters to the stack.
    arns: Mapping[str, str] = field(default_factory=dict, repr=False)
    provider: RealProvider


_SETS = frozenset({
    "computed", "extra", "failed", "gone", "in_use_codes", "one_of", "public_by", "ready", "replaced_by",
    "secret_outputs", "taken_codes", "unordered",
})  # fmt: skip


def aws_type(token: str, service: str, inputs: str, outputs: str = "", **fields: Any) -> AwsResourceType:
    """A row with its lists as words in a text. A type with the input `tags` is tagged."""
    named = tuple(inputs.split())
    sets = {key: frozenset(fields[key].split()) for key in _SETS & fields.keys()}
    tags = "tags" if "tags" in named else ""
    return AwsResourceType(
        **{"tags": tags, **fields, **sets},
        token=token,
        service=service,
        inputs=named,
        outputs=(*outputs.split(), *(["tagsAll"] if tags else [])),
    )


def ec2_type(token: str, kind: str, inputs: str, outputs: str = "", **fields: Any) -> AwsResourceType:
    """`kind`: EC2's resource type in tag specifications. Empty if it has no tags."""
    if kind:
        inputs, fields = f"{inputs} tags", {"tagging": tagging_by_field("id"), **fields}
    return aws_type(token, "ec2", inputs, outputs, kind=kind, **fields)


def pulumi_name_of_member(member: str) -> str:
    """`VpcId` -> `vpcId`, `KMSMasterKeyID` -> `kmsMasterKeyId`."""
    name = _ACRONYM.sub(lambda match: match[1] + match[2].lower(), member)
    return name[:1].lower() + name[1:]


def tagging_by_field(name: str) -> Tagging:
    """Tags of an EC2 resource whose id is in this field."""
    return Tagging("CreateTags", "DeleteTags", {"Resources": [f"{{{name}}}"]}, keys="Tags")


def unused_read(operation: str, parameters: Mapping[str, Any], missing: str = "", **when: str) -> Read:
    """A call whose response is not needed here. The real provider makes it, so deployers need a permission for it."""
    return Read(operation, parameters, "`{}`", missing, **when)


def read_by_id(operation: str, by: str, at: str, **fields: Any) -> Read:
    return Read(operation, {by: ["{id}"]}, at, **fields)


def read_by_filter(operation: str, at: str, filters: Mapping[str, str]) -> Read:
    return Read(operation, {"Filters": [{"Name": name, "Values": [value]} for name, value in filters.items()]}, at)


def ec2_arn(kind: str, *names: str) -> dict[str, str]:
    """The ARN of an EC2 resource, by the name of an output or of the services whose policies name it."""
    return dict.fromkeys(names or ("arn",), f"arn:aws:ec2:{{region}}:{{account}}:{kind}/{{id}}")
