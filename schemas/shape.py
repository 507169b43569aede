# SPDX-License-Identifier: Apache-2.0
"""Shape findings: the errors of JSON Schema in plain language, each with the nearest right name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator, extend

from catalog.platforms import PLATFORM_KEY, default_platform, platform_spellings, platform_word, platforms
from schemas.compose import platforms_with_key, properties_at, schema_of
from schemas.findings import Path
from schemas.name_suggestions import nearest_name, quoted_list
from schemas.scalars import is_secret

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
# The limit of unknown keys in one place that get a suggestion. A file with more of them is almost
# certainly not a stack file, and each look-up takes time.
MOST_GUESSES = 50
# Values below these keys may hold a secret by mistake. They are not printed.
_NOT_SHOWN = frozenset({"env", "args", "secret", "secrets"})


_QUOTE = "put it in quotes"
# The title, in the schema, of the value under `secure`.
_CIPHERTEXT = "the encrypted text"


class Problem(NamedTuple):
    """A finding without its line in the file."""

    code: str
    path: Path
    message: str
    remedy: str


def platform_of(data: Any) -> str:
    """The platform that a file names. If it names none, or an unknown one: the platform for which it was probably
    written."""
    config = data.get("config") if isinstance(data, Mapping) else None
    if not isinstance(config, Mapping):
        return default_platform()
    written = config.get(PLATFORM_KEY)
    words = platform_spellings()
    if isinstance(written, str) and (word := written if written in words else nearest_name(written, words)):
        return words[word]
    # The default platform, unless the file has none of that platform's required keys, and all of another's.
    own, first = _own_requirements(), default_platform()
    if own[first] & config.keys():
        return first
    return next((name for name, keys in own.items() if keys and keys <= config.keys()), first)


@cache
def _own_requirements() -> Mapping[str, Set[str]]:
    """The required keys of each platform that not all platforms require."""
    required = {}
    for name, platform in platforms().items():
        region = {platform.region.key} if platform.region else set()
        required[name] = region | set(schema_of(name)["$defs"]["config"].get("required", ()))
    return {name: keys - set.intersection(*required.values()) for name, keys in required.items()}


@cache
def _platform_validator(platform: str) -> Any:
    validator: Any = extend(Draft202012Validator, {"pattern": _validate_pattern})  # type: ignore[no-untyped-call]
    return validator(schema_of(platform))


def _validate_pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    """In JSON Schema, `$` is only the end of the text. In Python, a last line break may follow it."""
    if validator.is_type(instance, "string") and not re.search(pattern.replace("$", r"\Z"), instance):
        yield ValidationError(f"does not match {pattern}")


def schema_errors(data: Any, platform: str) -> list[Any]:
    """The validator's errors by the platform's schema."""
    return list(_platform_validator(platform).iter_errors(data))


def shape_problems(data: Any, written: Mapping[Path, str] = MappingProxyType({})) -> list[Problem]:
    """Every problem of a file's shape. `written`: the spelling of values other than texts in the file."""
    seen: dict[Problem, None] = {}
    platform = platform_of(data)
    if platform != default_platform() and PLATFORM_KEY not in data["config"]:
        remedy = f"add `{PLATFORM_KEY}: {platform_word(platform)}`"
        seen[Problem("TY012", ("config",), f"`{PLATFORM_KEY}` is missing", remedy)] = None
    for error in schema_errors(data, platform):
        for problem in _translate_error(error, platform):
            as_written = written.get(problem.path)
            if as_written is not None and problem.remedy.startswith(_QUOTE):
                problem = problem._replace(remedy=f'{_QUOTE}: "{as_written}"')
            seen[problem] = None
    return list(seen)


def _translate_error(error: Any, platform: str) -> Iterator[Problem]:
    path: Path = tuple(error.absolute_path)
    if "propertyNames" in error.absolute_schema_path:
        why = error.schema.get("patternErrorMessage", error.message)
        yield Problem("TY014", (*path, error.instance), f"`{error.instance}` is not a valid name", why)
    elif path and path[-1] == "secure" and error.schema.get("title") == _CIPHERTEXT:
        yield _must_be_secret(path[:-1])
    elif path and path[-1] == "secure" and isinstance(error.instance, str):
        # The whole mapping is a secret.
        yield _no_secret(path[:-1])
    elif is_secret(error.instance) and error.validator in ("additionalProperties", "required", "type", "anyOf"):
        wanted = error.validator == "anyOf" and {"$ref": "#/$defs/secret"} in error.validator_value
        yield _must_be_secret(path) if wanted else _no_secret(path)
    else:
        yield from _TRANSLATORS.get(str(error.validator), _malformed_value)(error, path, platform)


def _no_secret(path: Path) -> Problem:
    return Problem("TY016", path, "cannot be a secret", "write the value itself, without `secure:`")


def _unknown_keys(error: Any, path: Path, platform: str) -> Iterator[Problem]:
    allowed = set(error.schema.get("properties", ()))
    patterns = [re.compile(pattern) for pattern in error.schema.get("patternProperties", ())]
    free = [key for key in error.schema.get("properties", ()) if key not in error.instance]
    every = f"use one of {quoted_list(free)}" if free else "remove it"
    wrong = [
        key for key in error.instance if key not in allowed and not any(pattern.search(key) for pattern in patterns)
    ]
    for number, key in enumerate(wrong):
        remedy = None
        if elsewhere := platforms_with_key(path, key):
            message = f"`{key}` has no effect on the platform `{platform_word(platform)}`"
            others = quoted_list(map(platform_word, elsewhere))
            yield Problem("TY018", (*path, key), message, f"remove it, unless the file also serves {others}")
            continue
        if path == ("config",):
            remedy = _remedy_with_namespace(key, error.instance[key], free if number < MOST_GUESSES else [])
        elif number < MOST_GUESSES and (close := nearest_name(key, free)) is not None:
            remedy = f"did you mean `{close}`?"
        yield Problem("TY010", (*path, key), f"`{key}` is not known here", remedy or every)


@cache
def key_namespaces() -> frozenset[str]:
    """The namespaces of our own keys, and Pulumi's."""
    keys = {key for name in platforms() for key in schema_of(name)["$defs"]["config"]["properties"]}
    return frozenset(key.partition(":")[0] for key in keys) | {"pulumi"}


def _remedy_with_namespace(key: str, value: Any, free: list[str]) -> str | None:
    """The remedy for an unknown key: a namespace, or the nearest key. Namespaces are not compared, because they would
    make all keys look alike. None if there is no remedy."""
    namespace, _, name = key.rpartition(":")
    if not namespace and isinstance(value, Mapping) and key in key_namespaces():
        first = next(iter(value), "team")
        return f"write the namespace before each key, not as a level of its own: `{key}:{first}: …`"
    close = nearest_name(name, [own.partition(":")[2] for own in free])
    if close is not None:
        return f"did you mean `{next(own for own in free if own.endswith(f':{close}'))}`?"
    return None if ":" in key else f"add the namespace: `trainyard:{key}`"


def _missing_keys(error: Any, path: Path, _: str) -> Iterator[Problem]:
    if error.schema.get("title") == "a secret":
        yield _must_be_secret(path)
        return
    for key in error.validator_value:
        if key not in error.instance:
            example = error.schema.get("properties", {}).get(key, {}).get("examples", ["…"])[0]
            yield Problem("TY012", path, f"`{key}` is missing", f"add `{key}: {_as_yaml(example)}`")


def _wrong_type(error: Any, path: Path, platform: str) -> Iterator[Problem]:
    fitting = error.schema.get("title")
    if fitting == "a secret":
        yield _must_be_secret(path)
        return
    names = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    explained = None if fitting == "a text" else error.schema.get("patternErrorMessage")
    fitting = fitting or " or ".join(_KINDS[name] for name in names)
    if explained is None and path and not isinstance(path[-1], int):
        schemas = properties_at(platform, path[:-1], str(path[-1]))
        example = next((schema["examples"][0] for schema in schemas if schema.get("examples")), None)
        explained = None if example is None else f"write {fitting}, such as `{path[-1]}: {_as_yaml(example)}`"
    yield _does_not_fit(error.instance, path, fitting, explained)


def _must_be_secret(path: Path) -> Problem:
    key = ".".join(str(part) for part in path[1:])
    return Problem("TY015", path, "is not a secret that Pulumi encrypted", f"`trainyard secret set STACK '{key}'`")


def _does_not_fit(value: Any, path: Path, wanted: str, explained: str | None = None) -> Problem:
    if value is None:
        return Problem("TY011", path, f"has no value; it must be {wanted}", "give it a value, or remove the line")
    if isinstance(value, bool | int | float) and "a text" in wanted:
        return Problem(
            "TY011", path, f"is {_type_in_words(value)}; it must be {wanted}", f'{_QUOTE}: "{_as_yaml(value)}"'
        )
    if isinstance(value, str) and _NUMBER.fullmatch(value) and "number" in wanted:
        return Problem("TY011", path, f"is a text; it must be {wanted}", f"remove the quotes: {value}")
    return Problem("TY011", path, f"is {_type_in_words(value)}; it must be {wanted}", explained or f"write {wanted}")


def _not_allowed(error: Any, path: Path, _: str) -> Iterator[Problem]:
    choices = [str(choice) for choice in error.validator_value]
    value = str(error.instance)[:60]
    close = nearest_name(value, choices)
    remedy = f"did you mean `{close}`?" if close else f"use one of {quoted_list(choices)}"
    yield Problem("TY013", path, f"`{value}` is not one of {quoted_list(choices)}", remedy)


def _no_alternative_fits(error: Any, path: Path, platform: str) -> Iterator[Problem]:
    """Reports the errors of the alternative for this kind of value. If none takes this kind, lists all alternatives."""
    branches: dict[int, list[Any]] = {}
    for part in error.context or ():
        branches.setdefault(int(part.schema_path[0]), []).append(part)
    for parts in branches.values():
        if not any(part.validator == "type" and not part.path for part in parts):
            for part in parts:
                yield from _translate_error(part, platform)
            return
    definitions = schema_of(platform)["$defs"]
    schemas = [
        definitions[branch["$ref"].rsplit("/", 1)[-1]] if "$ref" in branch else branch
        for branch in error.validator_value
    ]
    yield _does_not_fit(error.instance, path, " or ".join(schema["title"] for schema in schemas))


_SAYS = {
    "minLength": ("is empty", "give it a value, or remove the line"),
    "minProperties": ("is empty", "name at least one"),
    "minItems": ("is empty", "name at least one, or remove the line"),
    "uniqueItems": ("has the same item twice", "keep one of them"),
}


def _malformed_value(error: Any, path: Path, _: str) -> Iterator[Problem]:
    limit = error.validator_value
    match error.validator:
        case "minimum":
            message, remedy = f"{error.instance} is too small", f"use {limit} or more"
        case "exclusiveMinimum":
            message, remedy = f"{error.instance} is too small", f"use more than {limit}"
        case "maximum":
            message, remedy = f"{error.instance} is too large", f"use {limit} or less"
        case "pattern":
            shown = "the value" if _NOT_SHOWN & set(path) else f"`{str(error.instance)[:80]}`"
            message, remedy = f"{shown} is malformed", error.schema["patternErrorMessage"]
        case name:
            message, remedy = _SAYS.get(str(name), (error.message[:200], "see stack.schema.json"))
    yield Problem("TY014", path, message, remedy)


_TRANSLATORS = {
    "additionalProperties": _unknown_keys,
    "required": _missing_keys,
    "type": _wrong_type,
    "enum": _not_allowed,
    "anyOf": _no_alternative_fits,
}


def _type_in_words(value: Any) -> str:
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


def _as_yaml(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
