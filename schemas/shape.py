# SPDX-License-Identifier: Apache-2.0
"""Shape findings: what JSON Schema says, in plain language and with the nearest right name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from jsonschema.validators import Draft202012Validator

from schemas.findings import Path
from schemas.names import listing, nearest, suggestion

_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


class Problem(NamedTuple):
    """A finding before its place in the file is known."""

    code: str
    path: Path
    message: str
    remedy: str


@cache
def schema() -> Mapping[str, Any]:
    """stack.schema.json, read once."""
    loaded: dict[str, Any] = json.loads((FilePath(__file__).parent / "stack.schema.json").read_text("utf-8"))
    return loaded


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def problems(data: Any) -> list[Problem]:
    """Everything about a file's values that the schema refuses."""
    seen: dict[Problem, None] = {}
    for error in _validator().iter_errors(data):
        seen.update(dict.fromkeys(_translate(error)))
    return list(seen)


def _translate(error: Any) -> Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    if "propertyNames" in error.absolute_schema_path:
        why = error.schema.get("patternErrorMessage", error.message)
        yield Problem("TY014", (*path, error.instance), f"the name `{error.instance}` is refused", why)
        return
    if _is_secret(error.instance) and error.validator in ("additionalProperties", "required", "type", "anyOf"):
        yield Problem("TY016", path, "cannot be a secret", "write the value itself, without `secure:`")
        return
    yield from _TRANSLATORS.get(str(error.validator), _malformed)(error, path)


def _unknown(error: Any, path: Path) -> Iterator[Problem]:
    known = list(error.schema.get("properties", ()))
    patterns = list(error.schema.get("patternProperties", ()))
    free = [key for key in known if key not in error.instance]
    for key in error.instance:
        if key in known or any(re.search(pattern, key) for pattern in patterns):
            continue
        remedy = suggestion(key, free)
        if path == ("config",) and ":" not in key:
            close = nearest(f"trainyard:{key}", free)
            remedy = f"did you mean `{close}`?" if close else f"write its namespace before it: `trainyard:{key}`"
        yield Problem("TY010", (*path, key), f"`{key}` is not known here", remedy)


def _missing(error: Any, path: Path) -> Iterator[Problem]:
    if error.schema.get("title") == "a secret":
        yield _must_be_secret(path)
        return
    for key in error.validator_value:
        if key not in error.instance:
            example = error.schema.get("properties", {}).get(key, {}).get("examples", ["…"])[0]
            yield Problem("TY012", path, f"`{key}` is missing", f"add `{key}: {_yaml(example)}`")


def _wrong_type(error: Any, path: Path) -> Iterator[Problem]:
    wanted = error.schema.get("title")
    if wanted == "a secret":
        yield _must_be_secret(path)
        return
    names = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    yield _does_not_fit(error.instance, path, wanted or " or ".join(_KINDS[name] for name in names))


def _must_be_secret(path: Path) -> Problem:
    key = ".".join(str(part) for part in path[1:])
    return Problem("TY015", path, "is no secret as Pulumi writes it", f"`pulumi config set --secret --path '{key}'`")


def _does_not_fit(value: Any, path: Path, wanted: str) -> Problem:
    if value is None:
        return Problem("TY011", path, f"has no value; {wanted} is wanted", "give it a value, or remove the line")
    if isinstance(value, bool | int | float) and "a text" in wanted:
        return Problem("TY011", path, f"is {_kind(value)}; {wanted} is wanted", f'put it in quotes: "{_yaml(value)}"')
    if isinstance(value, str) and _NUMBER.fullmatch(value) and "number" in wanted:
        return Problem("TY011", path, f"is a text; {wanted} is wanted", f"remove the quotes: {value}")
    return Problem("TY011", path, f"is {_kind(value)}; {wanted} is wanted", f"write {wanted}")


def _not_allowed(error: Any, path: Path) -> Iterator[Problem]:
    choices = [str(choice) for choice in error.validator_value]
    value = str(error.instance)[:60]
    close = nearest(value, choices)
    remedy = f"did you mean `{close}`?" if close else f"use one of {listing(choices)}"
    yield Problem("TY013", path, f"`{value}` is not one of {listing(choices)}", remedy)


def _alternatives(error: Any, path: Path) -> Iterator[Problem]:
    """Of several alternatives, the one whose kind of value was written is judged; else all are named."""
    branches: dict[int, list[Any]] = {}
    for part in error.context or ():
        branches.setdefault(int(part.schema_path[0]), []).append(part)
    for parts in branches.values():
        if not any(part.validator == "type" and not part.path for part in parts):
            for part in parts:
                yield from _translate(part)
            return
    yield _does_not_fit(error.instance, path, " or ".join(_title(branch) for branch in error.validator_value))


def _title(branch: Mapping[str, Any]) -> str:
    if "$ref" in branch:
        branch = schema()["$defs"][branch["$ref"].rsplit("/", 1)[-1]]
    return str(branch["title"])


_SAYS = {
    "minLength": ("is empty", "give it a value, or remove the line"),
    "minProperties": ("is empty", "name at least one"),
    "minItems": ("is empty", "name at least one, or remove the line"),
    "uniqueItems": ("names something twice", "keep one of them"),
}


def _malformed(error: Any, path: Path) -> Iterator[Problem]:
    limit = error.validator_value
    match error.validator:
        case "minimum":
            message, remedy = f"{error.instance} is too small", f"use {limit} or more"
        case "exclusiveMinimum":
            message, remedy = f"{error.instance} is too small", f"use more than {limit}"
        case "maximum":
            message, remedy = f"{error.instance} is too large", f"use {limit} or less"
        case "pattern":
            # Whoever writes the secret itself where its OCID belongs does not see it printed.
            shown = "the value" if path and path[-1] == "secret" else f"`{str(error.instance)[:80]}`"
            message, remedy = f"{shown} is malformed", error.schema["patternErrorMessage"]
        case name:
            message, remedy = _SAYS.get(str(name), (error.message[:200], "see stack.schema.json"))
    yield Problem("TY014", path, message, remedy)


_TRANSLATORS = {
    "additionalProperties": _unknown,
    "required": _missing,
    "type": _wrong_type,
    "enum": _not_allowed,
    "anyOf": _alternatives,
}


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _kind(value: Any) -> str:
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
