# SPDX-License-Identifier: Apache-2.0
"""Converts Pulumi properties to models of the official SDK and back, by the SDK's own type tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from components.oci.client.session import sdk_module
from components.platform.calls import ProviderError
from components.platform.values import Properties

_AFTER_DIGIT = re.compile(r"(?<=\d)[A-Z]")
_RENAMED = {"lifecycleState": "state", "isStateless": "stateless", "inactiveStatus": "inactiveState"}
_LIST = re.compile(r"^list\[(.+)\]$")
_DICT = re.compile(r"^dict\(str, (.+)\)$")
# Whole numbers of 64 bits, which the Pulumi provider writes as text.
TEXT_NUMBERS = frozenset(
    {
        "approximateCount",
        "approximateSize",
        "artifactContentLength",
        "billableSizeInGbs",
        "layersSizeInBytes",
        "maximumRuntimeInMinutes",
        "timeAmount",
    }
)
# The SDK's word for a text that is not in an enumeration.
_NOT_A_CHOICE = "UNKNOWN_ENUM_VALUE"
_NESTED_TAGS = "dict(str, dict(str, object))"


def pulumi_name_of_field(api_name: str, swagger_type: str = "") -> str:
    if api_name in _RENAMED:
        return _RENAMED[api_name]
    name = _AFTER_DIGIT.sub(lambda match: match[0].lower(), api_name).replace("GBs", "Gbs")
    return f"{name}s" if swagger_type.startswith("list[") and not name.endswith("s") else name


def models_of(service: str) -> Any:
    return sdk_module(f"{service}.models")


@cache
def pulumi_fields(service: str, model: str) -> Mapping[str, tuple[str, str]]:
    """The SDK's attribute and type of each field of a model, by its Pulumi name."""
    empty = getattr(models_of(service), model)()
    return {
        pulumi_name_of_field(empty.attribute_map[attribute], kind): (attribute, kind)
        for attribute, kind in empty.swagger_types.items()
    }


def to_model(service: str, model: str, properties: Mapping[str, Any]) -> Any:
    """The model, or its subtype by the discriminator. Leaves out properties that it does not have."""
    choose = getattr(getattr(models_of(service), model), "get_subtype", None)
    if choose is not None:
        names = getattr(models_of(service), model)().attribute_map
        wire = {names[a]: properties.get(key) for key, (a, _) in pulumi_fields(service, model).items()}
        model = str(choose({key: value.upper() if isinstance(value, str) else value for key, value in wire.items()}))
    model_fields = pulumi_fields(service, model)
    try:
        values = {
            model_fields[key][0]: _to_api(service, model_fields[key][1], value)
            for key, value in properties.items()
            if key in model_fields and value is not None
        }
        made = getattr(models_of(service), model)(**values)
    except ValueError as error:  # a value of a wrong type, or one that the SDK's model refuses
        raise ProviderError(f"{model}: {error}") from None
    for key, value in properties.items():
        is_choice = key in model_fields and isinstance(value, str) and value != _NOT_A_CHOICE
        if is_choice and getattr(made, model_fields[key][0]) == _NOT_A_CHOICE:
            raise ProviderError(f"`{key}`: `{value}` is not a value that OCI accepts.")
    return made


def _to_api(service: str, kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == _NESTED_TAGS and isinstance(value, Mapping):
        nested: dict[str, dict[str, Any]] = {}
        for key, item in value.items():
            namespace, _, name = key.partition(".")
            nested.setdefault(namespace, {})[name] = item
        return nested
    if match := _LIST.match(kind):
        return [_to_api(service, match[1], item) for item in value]
    if match := _DICT.match(kind):
        return {key: _to_api(service, match[1], item) for key, item in value.items()}
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    return to_model(service, kind, value) if isinstance(value, Mapping) else value


_SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda value: value if isinstance(value, bool) else str(value).lower() == "true",
    "datetime": datetime.fromisoformat,
    "object": lambda value: value,
}


def from_model(value: Any, key: str = "") -> Any:
    """The SDK's value in the form of Pulumi's provider."""
    if isinstance(value, list):
        return [from_model(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if hasattr(value, "swagger_types"):
        shown = {}
        for attribute, kind in value.swagger_types.items():
            name = pulumi_name_of_field(value.attribute_map[attribute], kind)
            item = from_model(getattr(value, attribute), name)
            if item is not None:
                shown[name] = item
        return shown
    if isinstance(value, Mapping):
        # Defined tags are nested by namespace in the API, dotted in Pulumi; plain maps stay as they are.
        flat: Properties = {}
        for tag, item in value.items():
            flat |= {f"{tag}.{name}": each for name, each in item.items()} if isinstance(item, Mapping) else {tag: item}
        return flat
    return str(value) if key in TEXT_NUMBERS and value is not None else value
