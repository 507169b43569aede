# SPDX-License-Identifier: Apache-2.0
"""Converts Pulumi properties to parameters of AWS's API and back, by the shapes of botocore's models.

Pulumi's names come from Terraform. They are the API's names with a small first letter, and lists have plural names.
`renamed` has all other names: the Pulumi path without indices -> the API's member.
"""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from components.aws.types.aws_resource_type import pulumi_name_of_member
from components.platform.calls import InputFailure
from components.platform.values import UNKNOWN, Properties

# Properties that are maps: users choose their keys.
MAPS = frozenset({"metadata", "tags", "tagsAll", "volumeTags"})
_INDEX = re.compile(r"\[\d+\]")
_WHOLE = re.compile(r"-?\d+")
_TAG = ({"Key", "Value"}, {"key", "value"})


@dataclass
class ParameterBuilder:
    """Builds the parameters of a call from properties, and collects validation failures."""

    renamed: Mapping[str, str] = field(default_factory=dict)
    failures: list[InputFailure] = field(default_factory=list)

    def parameters(self, shape: Any, value: Any, path: str = "") -> Any:
        if value is UNKNOWN or value is None:
            return value
        if shape.type_name == "structure":
            return self._structure(shape, value, path)
        if shape.type_name == "list":
            return self._list(shape, value, path)
        if shape.type_name == "map" and isinstance(value, Mapping):
            return {key: self.parameters(shape.value, item, f"{path}.{key}") for key, item in value.items()}
        return self._scalar(shape, value, path)

    def _structure(self, shape: Any, value: Any, path: str) -> Any:
        if isinstance(value, list) and len(value) == 1:  # in Terraform, some structures are a list of one
            value, path = value[0], f"{path}[0]"
            if value is UNKNOWN:
                return value
        if not isinstance(value, Mapping):
            return self._scalar(shape, value, path)
        made: Properties = {}
        for key, item in value.items():
            below = f"{path}.{key}" if path else key
            member = member_of(shape, key, self.renamed.get(_INDEX.sub("", below), ""))
            if member is None:
                near = difflib.get_close_matches(key, [pulumi_name_of_member(name) for name in shape.members], 1)
                self._fail(below, f"there is no such property{f'; did you mean `{near[0]}`?' if near else ''}")
            elif item is not None:
                made[member] = self.parameters(shape.members[member], item, below)
        for name in shape.required_members:
            if name not in made and path:
                self._fail(f"{path}.{pulumi_name_of_member(name)}", "this property is missing", missing=True)
        return made

    def _list(self, shape: Any, value: Any, path: str) -> Any:
        if isinstance(value, Mapping) and shape.member.type_name == "structure" and set(shape.member.members) in _TAG:
            key, content = sorted(shape.member.members)[:2]
            return [
                {key: name, content: self.parameters(shape.member.members[content], item, f"{path}.{name}")}
                for name, item in value.items()
            ]
        if isinstance(value, Mapping) and shape.member.type_name == "structure":
            # In Terraform, some lists are a single block.
            return [self.parameters(shape.member, value, path)]
        if not isinstance(value, list):
            return self._scalar(shape, value, path)
        return [self.parameters(shape.member, item, f"{path}[{index}]") for index, item in enumerate(value)]

    def _scalar(self, shape: Any, value: Any, path: str) -> Any:
        from botocore.validate import ParamValidator

        # The provider has flags and numbers as texts where a missing value differs from false.
        kind = shape.type_name
        if kind == "boolean" and value in ("true", "false"):
            value = value == "true"
        elif kind in ("integer", "long") and isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        elif kind in ("float", "double") and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        elif kind == "blob" and isinstance(value, str):
            value = value.encode()
        report = ParamValidator().validate(value, shape)
        if report.has_errors():
            self._fail(path, report.generate_report().replace("parameter input,", f"parameter {path},"))
        choices = list(getattr(shape, "enum", None) or ())
        if choices and isinstance(value, str) and value not in choices:
            near = difflib.get_close_matches(value, choices, 3, 0.4) or choices[:8]
            self._fail(path, f"`{value}` is not a value that AWS accepts; nearest are {', '.join(near)}")
        return value

    def _fail(self, path: str, reason: str, missing: bool = False) -> None:
        self.failures.append(InputFailure(path, reason, missing))


def member_of(shape: Any, key: str, renamed: str = "") -> str | None:
    """The member of a structure, by its Pulumi name."""
    if renamed:
        return renamed if renamed in shape.members else None
    lower = {name.lower(): name for name in shape.members}
    wanted = key.lower()
    names = (wanted, wanted.removesuffix("s"), f"{wanted}s", f"{wanted.removesuffix('ies')}y")
    return next((lower[name] for name in names if name in lower), None)


def to_pulumi(value: Any, renamed: Mapping[str, str], path: str = "") -> Any:
    """A response of the API in Pulumi's names and types. `renamed`: API path -> Pulumi name."""
    if isinstance(value, list):
        tags = all(isinstance(item, Mapping) and set(item) in _TAG for item in value)
        if tags and value:
            return {item.get("Key", item.get("key")): item.get("Value", item.get("value")) for item in value}
        return [to_pulumi(item, renamed, path) for item in value]
    if isinstance(value, Mapping):
        if "Statement" in value:  # botocore decodes IAM's policy documents, and their keys are not members of a shape
            return json.dumps(value)
        shown = {}
        for member, item in value.items():
            below = f"{path}.{member}" if path else member
            name = renamed.get(below, pulumi_name_of_member(member))
            is_map = name in MAPS and (isinstance(item, Mapping) or item == [])
            shown[name] = dict(item) if is_map else to_pulumi(item, renamed, below)
        return shown
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def in_form_of(live: Any, given: Any) -> Any:
    """The live value in the form of the program's value: flags and numbers as text, and an equal JSON document as the
    program's text. So an unchanged value has no difference."""
    if isinstance(given, str):
        if isinstance(live, bool):
            return str(live).lower()
        if isinstance(live, int):
            return str(live)
        if isinstance(live, Mapping | list) or (isinstance(live, str) and live[:1] in ("{", "[")):
            decoded, wanted = _decoded_json(live), _decoded_json(given)
            return given if decoded == wanted else json.dumps(decoded, sort_keys=True)
        return live
    if isinstance(given, Mapping) and isinstance(live, Mapping):
        return {key: in_form_of(item, given.get(key)) for key, item in live.items()}
    if isinstance(given, list):
        items = live if isinstance(live, list) else [] if live is None else [live]
        return [in_form_of(item, given[index] if index < len(given) else None) for index, item in enumerate(items)]
    if isinstance(given, Mapping) and isinstance(live, list) and len(live) == 1:
        return in_form_of(live[0], given)
    return live


def _decoded_json(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def search_path(expression: str, value: Any) -> Any:
    import jmespath

    return jmespath.search(expression, value)


def shape_at(shape: Any, where: str) -> Any:
    """The shape at a path of members."""
    for name in where.split("."):
        shape = shape.members[name]
    return shape


def put_at(made: Properties, where: str, value: Any) -> None:
    """Sets a value at a path of members."""
    *above, last = where.split(".")
    for name in above:
        made = made.setdefault(name, {})
    made[last] = value
