# SPDX-License-Identifier: Apache-2.0
"""Composes one JSON Schema from neutral.schema.json and each platform's section: `python -m schemas.compose` writes it.

A section (components/<platform>/section.schema.json) is a JSON merge patch (RFC 7396): it adds keys, changes them, and
removes with null what the platform does not have. The commands read the schema of one platform. stack.schema.json holds
all of them for editors, which choose by `trainyard:platform`. One stack file may serve several platforms, so a key of
another platform is no mistake: `platforms_with` finds those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from catalog import frameworks
from catalog.frameworks import Framework
from catalog.platforms import (
    PLATFORM_KEY,
    default_platform,
    platform_folder,
    platform_spellings,
    platform_word,
    platforms,
)
from schemas.findings import Path as KeyPath

# Key of the job -> the definition of its values.
KINDS = {"roles": "#/$defs/role", "options": "#/$defs/option", "ports": "#/$defs/ports"}


def built_in_keys(key_of_job: str) -> dict[str, dict[str, Any]]:
    """Every key of the built-in frameworks, with each framework's description of it, and example values."""
    texts: dict[str, dict[str, list[str]]] = {}
    examples: dict[str, list[Any]] = {}
    for name in frameworks.framework_names():
        for strategy in frameworks.framework_document(name).get("strategies") or (None,):
            for key, text, values in _described_keys(frameworks.framework_row(name, strategy), key_of_job):
                framework_names = texts.setdefault(key, {}).setdefault(text, [])
                framework_names += [name] if name not in framework_names else []
                examples.setdefault(key, values)
    return {
        key: {
            "description": " ".join(f"{', '.join(of)}: {text}" for text, of in summary.items()),
            "examples": examples[key],
            "$ref": KINDS[key_of_job],
        }
        for key, summary in texts.items()
    }


def _described_keys(framework: Framework, key_of_job: str) -> Iterator[tuple[str, str, list[Any]]]:
    if key_of_job == "roles":
        for role, spec in framework.roles.items():
            yield role, f"{spec.why}.", [max(1, spec.minimum)]
    elif key_of_job == "options":
        for option, choice in framework.options.items():
            values = [True, False] if choice.type == "boolean" else list(choice.values)
            yield option, choice.meaning, values or [choice.default]
    else:
        for port in framework.ports:
            yield port.label, f"{port.why}.", [port.default]


FOLDER = Path(__file__).parent
_HOMES = FOLDER.parent / "components"
COMPOSED = FOLDER / "stack.schema.json"
_DEFS = "#/$defs/"
_LONGEST_LINE = 118
# The definition of all keys. It differs on every platform, because one of the keys is the region.
_WHOLE = "config"
_JOB = "job"


@cache
def schema_of(platform: str) -> Mapping[str, Any]:
    """The schema of stack files of this platform."""
    merged: dict[str, Any] = merge_patch(_read_schema(FOLDER / "neutral.schema.json"), section_of(platform))
    summaries = "; ".join(f"{platform_word(name)}: {row.summary}" for name, row in platforms().items())
    merged["$defs"][_WHOLE]["properties"][PLATFORM_KEY] = {
        "description": f"Where training runs ({summaries}).",
        "examples": [default_platform()],
        "type": "string",
        "enum": list(platform_spellings()),
        "default": default_platform(),
    }
    return merged


@cache
def section_of(platform: str) -> Mapping[str, Any]:
    """A platform's section: what it adds, changes and removes."""
    section: Mapping[str, Any] = _read_schema(_HOMES / platform_folder(platform) / "section.schema.json")
    return section


def merge_patch(target: Any, patch: Any) -> Any:
    """Merges by RFC 7396: mappings are merged, null removes a key, any other value replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def compose_for_editors() -> dict[str, Any]:
    """The schema for editors: the definitions of the default platform, and the differences of the others.

    The schema of the configuration is chosen by `trainyard:platform`: without that key, it is the default platform's.
    """
    first, *others = platforms()
    whole = schema_of(first)
    definitions = _with_built_in_frameworks(_serving_others(first))
    for platform in others:
        # A platform's own definitions, named after it: those that differ, or refer to one that differs.
        own = _with_built_in_frameworks(_serving_others(platform))
        differ = {name for name, value in own.items() if value != definitions.get(name)}
        while more := {
            name for name, value in own.items() if name not in differ and differ & set(_referenced_definitions(value))
        }:
            differ |= more
        definitions |= {
            f"{platform}.{name}": _with_own_references(own[name], platform, differ) for name in own if name in differ
        }
    definitions[f"{first}.{_WHOLE}"] = definitions[_WHOLE]
    chosen: dict[str, Any] = {"$ref": f"{_DEFS}{first}.{_WHOLE}"}
    for word, name in reversed([item for item in platform_spellings().items() if item[1] in others]):
        says = {"properties": {PLATFORM_KEY: {"const": word}}, "required": [PLATFORM_KEY]}
        chosen = {"if": says, "then": {"$ref": f"{_DEFS}{name}.{_WHOLE}"}, "else": chosen}
    return {**whole, "$defs": {**definitions, _WHOLE: chosen}}


def _serving_others(platform: str) -> dict[str, Any]:
    """A platform's definitions, with the keys of the other platforms: a file may serve several, so an editor must not
    mark these keys as errors. `trainyard check` warns of them (TY018)."""
    definitions = dict(schema_of(platform)["$defs"])
    elsewhere = f"it has no effect on `{platform_word(platform)}`"
    for name, own in definitions.items():
        if own.get("additionalProperties") is False:
            theirs = {
                key: {"description": f"Only for `{platform_word(other)}`: {elsewhere}.", "doNotSuggest": True}
                for other in platforms()
                for key in schema_of(other)["$defs"].get(name, {}).get("properties", {})
            }
            definitions[name] = {**own, "properties": {**theirs, **own.get("properties", {})}}
    return definitions


def _with_built_in_frameworks(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the built-in frameworks: names, strategies, roles, options and ports. (Commands read the frameworks
    instead.)"""
    of_job, names = definitions[_JOB]["properties"], frameworks.framework_names()
    strategies = {name: [*frameworks.framework_document(name).get("strategies", ())] for name in names}
    lists = "".join(f" {name}: {', '.join(own)}." for name, own in strategies.items() if own)
    # An editor offers the examples in this order: the usual framework first.
    usual = of_job["framework"]["examples"]
    known: dict[str, Any] = {kind: {"properties": built_in_keys(kind)} for kind in KINDS}
    known["framework"] = {
        "description": f"{', '.join(names)}, or one of your own (trainyard:frameworks).",
        "examples": [*usual, *(name for name in names if name not in usual)],
    }
    known["strategy"] = {
        "description": of_job["strategy"]["description"] + lists,
        "examples": sorted({strategy for own in strategies.values() for strategy in own}),
    }
    return {**definitions, _JOB: merge_patch(definitions[_JOB], {"properties": known})}


def _referenced_definitions(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "$ref":
                yield item.removeprefix(_DEFS)
            else:
                yield from _referenced_definitions(item)
    elif isinstance(value, list):
        for item in value:
            yield from _referenced_definitions(item)


def _with_own_references(value: Any, platform: str, differ: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: f"{_DEFS}{platform}.{item.removeprefix(_DEFS)}"
            if key == "$ref" and item.removeprefix(_DEFS) in differ
            else _with_own_references(item, platform, differ)
            for key, item in value.items()
        }
    return [_with_own_references(item, platform, differ) for item in value] if isinstance(value, list) else value


def pretty_json(value: Any, indent: str = "") -> str:
    """Readable JSON: short values are on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (indent and len(indent) + len(line) < _LONGEST_LINE // 2):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join(f"{deeper}{pretty_json(item, deeper)}" for item in value) + f"\n{indent}]"
    rows = (f"{deeper}{json.dumps(key)}: {pretty_json(item, deeper)}" for key, item in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def _read_schema(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


def write_generated(file: Path, text: str) -> None:
    """Replaces a generated file in one step, so that a failure keeps the file as it was."""
    draft = file.with_name(f".{file.name}.new")
    draft.write_text(text, "utf-8")
    draft.replace(file)


if __name__ == "__main__":
    write_generated(COMPOSED, pretty_json(compose_for_editors()) + "\n")


def platforms_with_key(path: KeyPath, key: str) -> list[str]:
    """The platforms whose stack files may have this key at this place."""
    return [name for name in platforms() if next(properties_at(name, path, key), None) is not None]


def properties_at(platform: str, path: KeyPath, key: str) -> Iterator[Mapping[str, Any]]:
    """The schema of a key at this place, for each alternative."""
    whole = schema_of(platform)
    places = [whole]
    for step in path:
        schemas, places = places, []
        for schema in schemas:
            of_key = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
            below = schema.get("items") if isinstance(step, int) else of_key
            places += _schema_alternatives(whole, below) if isinstance(below, Mapping) else ()
    for schema in places:
        if key in schema.get("properties", ()):
            yield schema["properties"][key]


def without_keys(data: Any, paths: frozenset[KeyPath], here: KeyPath = ()) -> Any:
    """The same values without these keys."""
    if isinstance(data, Mapping):
        return {key: without_keys(item, paths, (*here, key)) for key, item in data.items() if (*here, key) not in paths}
    if isinstance(data, list):
        return [without_keys(item, paths, (*here, index)) for index, item in enumerate(data)]
    return data


def _schema_alternatives(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "$ref" in schema:
        yield from _schema_alternatives(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
    for alternative in schema.get("anyOf", ()):
        yield from _schema_alternatives(whole, alternative)
    yield schema
