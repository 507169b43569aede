# SPDX-License-Identifier: Apache-2.0
"""Validates request bodies and trims replies, by the SDK's type tables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from localcloud.oci import sdk
from localcloud.oci.oci_errors import missing_parameter
from localcloud.server import http
from localcloud.server.api_errors import cannot_parse_request, invalid_parameter

ALWAYS_SENT = ("freeformTags", "definedTags", "systemTags")
# Except for models whose tags Oracle's provider cannot store: its `oci_vault_secrets` has no field `system_tags`, and
# fails as soon as an answer has some. tests/contract/test_oci_provider_source.py looks for others.
NEVER_SENT = {("vault", "SecretSummary"): frozenset({"systemTags"})}
_CONTAINER = re.compile(r"(list)\[(.+)\]|(dict)\(str, (.+)\)")


def _is_date(value: Any) -> bool:
    try:
        return isinstance(value, str) and http.parse_rfc3339(value) >= 0
    except (ValueError, OverflowError):
        return False


_SCALARS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a string", lambda value: isinstance(value, str)),
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "datetime": ("a date in RFC 3339 format", _is_date),
    "object": ("any value", lambda value: True),
}


def validate_body(service: str, name: str, value: Any, where: str = "") -> dict[str, Any]:
    """Returns the body without its nulls. Raises OCI's error for the first mistake in it."""
    if not isinstance(value, dict):
        raise cannot_parse_request(f"{where or 'the body'} must be an object")
    model = sdk.sdk_model(service, name)
    subtype = model.subtypes.get(str(value.get(model.discriminator))) if model.discriminator else None
    if model.subtypes and subtype is None and model.discriminator in value:
        choices = ", ".join(sorted(model.subtypes))
        raise invalid_parameter(f"{model.discriminator} must be one of {choices}, not {value[model.discriminator]!r}")
    model = _merge_subtype(service, name, subtype) if subtype and subtype != name else model
    for field in model.fields.values():
        if field.required and value.get(field.wire) is None:
            raise missing_parameter(_join_path(where, field.wire))
    valid = {}
    for key, item in value.items():
        path = _join_path(where, key)
        if key not in model.fields:
            near = difflib.get_close_matches(key, model.fields, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise invalid_parameter(f"{path} is not a field of {model.name}{hint}")
        if item is not None:
            valid[key] = _validate_type(service, model.fields[key].type, item, path)
            _require_choice(model.fields[key], valid[key], path)
    return valid


def shape_reply(service: str, name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Keeps only the fields of the model, and adds those that OCI sends even when they are empty.

    Without tags in the answer, clients would treat them as unknown, and every plan would show a change."""
    model_fields = sdk.sdk_model(service, name).fields
    unsent = NEVER_SENT.get((service, name), frozenset())
    empty: dict[str, Any] = {key: {} for key in ALWAYS_SENT if key in model_fields and key not in unsent}
    return empty | {key: value[key] for key in model_fields if key in value and key not in unsent}


def model_fields(service: str, name: str) -> frozenset[str]:
    return frozenset(sdk.sdk_model(service, name).fields)


@cache
def _merge_subtype(service: str, name: str, subtype: str) -> sdk.Model:
    """A subtype with the required fields of its base model, which the SDK does not repeat."""
    base, model = sdk.sdk_model(service, name).fields, sdk.sdk_model(service, subtype)
    fields = {
        key: replace(field, required=True) if key in base and base[key].required else field
        for key, field in model.fields.items()
    }
    return replace(model, fields=fields)


def require_choices(service: str, name: str, details: Mapping[str, Any]) -> None:
    """Checks values against the choices of the resource's model. The model of the details may list no choices."""
    model_fields = sdk.sdk_model(service, name).fields
    for key, value in details.items():
        if key in model_fields:
            _require_choice(model_fields[key], value, key)


def _require_choice(field: sdk.Field, value: Any, where: str) -> None:
    for item in value if isinstance(value, list) else [value]:
        if field.allowed and item not in field.allowed:
            raise invalid_parameter(f"{where} must be one of {', '.join(sorted(field.allowed))}, not {item!r}")


def _validate_type(service: str, type_name: str, value: Any, where: str) -> Any:
    container, inner = _split_container(type_name)
    if container == "list":
        if not isinstance(value, list):
            raise invalid_parameter(f"{where} must be a list")
        return [_validate_type(service, inner, item, f"{where}[{index}]") for index, item in enumerate(value)]
    if container == "dict":
        if not isinstance(value, dict):
            raise invalid_parameter(f"{where} must be an object")
        return {key: _validate_type(service, inner, item, f"{where}.{key}") for key, item in value.items()}
    if type_name in _SCALARS:
        wanted, fits = _SCALARS[type_name]
        if not fits(value):
            raise invalid_parameter(f"{where} must be {wanted}")
        return value
    return validate_body(service, type_name, value, where)


@cache
def _split_container(type_name: str) -> tuple[str, str]:
    match = _CONTAINER.fullmatch(type_name)
    if not match:
        return "", type_name
    return (match[1], match[2]) if match[1] else (match[3], match[4])


def _join_path(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
