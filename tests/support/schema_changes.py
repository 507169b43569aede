# SPDX-License-Identifier: Apache-2.0
"""Changes of stack files, drawn over every key of schemas/stack.schema.json: of any example, one value is another one,
or a key is there that was not. Only changes that `check` accepts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from catalog.platforms import platform_in
from schemas.judge import judge_file
from tests.support.examples import STACKS

SCHEMA = json.loads((STACKS.parent / "schemas" / "stack.schema.json").read_text("utf-8"))
ANY = "*"
_DEEPEST = 7
_TEXTS = ("drawn", "drawn.py", "ocid1.vcn.oc1.iad.drawn", "arn:aws:iam::666666666666:role/drawn", "10.88.0.0/16")
_ATTEMPTS = 200
Keys = tuple[str, ...]
Schema = Mapping[str, Any]


def keys_of_schema(schema: Schema, above: Keys = ()) -> Iterator[tuple[Keys, Schema]]:
    """Each key with the schema of its value. `*` is any key, or any item of a list."""
    schema = _resolved(schema)
    if len(above) > _DEEPEST:
        return
    for option in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from keys_of_schema(option, above)
    for key, value in schema.get("properties", {}).items():
        if isinstance(value, Mapping):
            yield (*above, key), value
            yield from keys_of_schema(value, (*above, key))
    for part in ("additionalProperties", "items"):
        if isinstance(schema.get(part), Mapping):
            yield (*above, ANY), schema[part]
            yield from keys_of_schema(schema[part], (*above, ANY))


def _resolved(schema: Schema) -> Schema:
    named = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if not named:
        return schema
    return _resolved({**SCHEMA["$defs"][named], **{key: value for key, value in schema.items() if key != "$ref"}})


@cache
def keys_of_platform(platform: str) -> tuple[tuple[Keys, Schema], ...]:
    found: dict[Keys, Schema] = {}
    for keys, schema in keys_of_schema({"$ref": f"#/$defs/{platform}.config"}):
        found.setdefault(keys, schema)
    return tuple(found.items())


def another_value(chance: Random, schema: Schema, value: Any) -> Any:
    schema = _resolved(schema)
    if options := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        return another_value(chance, chance.choice(options), value)
    kind = schema.get("type")
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if schema.get("examples") and chance.random() < 0.7:
        return copy.deepcopy(chance.choice(schema["examples"]))
    if kind == "boolean":
        return not value
    if kind in ("integer", "number"):
        return (value if isinstance(value, int | float) else schema.get("minimum", 1)) + chance.choice((1, 3, 60))
    if kind == "array":
        return [another_value(chance, schema.get("items", {}), None)]
    if kind == "object":
        needed = schema.get("required", ())
        made = {key: another_value(chance, schema["properties"][key], None) for key in needed}
        if not needed and isinstance(schema.get("additionalProperties"), Mapping):
            made["drawn"] = another_value(chance, schema["additionalProperties"], None)
        return made
    return chance.choice(_TEXTS)


def _set_another_value(chance: Random, config: Any, keys: Keys, schema: Schema) -> bool:
    holder = config
    for key in keys[:-1]:
        if isinstance(holder, list) and holder:
            holder = chance.choice(holder)
        elif isinstance(holder, dict) and (holder if key == ANY else key in holder):
            holder = holder[chance.choice(sorted(holder)) if key == ANY else key]
        else:
            return False
    last = keys[-1]
    if isinstance(holder, list) and last == ANY:
        holder.append(another_value(chance, schema, None))
    elif isinstance(holder, dict):
        key = (chance.choice(sorted(holder)) if holder else "drawn") if last == ANY else last
        holder[key] = another_value(chance, schema, holder.get(key))
    else:
        return False
    return True


def draw_change(chance: Random, folder: Path) -> tuple[str, Keys, Mapping[str, Any]]:
    """The name of an example, the key that changes, and the changed document. `folder` has the examples' code."""
    files = sorted(STACKS.glob("Pulumi.*.yaml"))
    tried = folder / "Pulumi.tried.yaml"
    for _ in range(_ATTEMPTS):
        file = chance.choice(files)
        document = yaml.safe_load(file.read_text("utf-8"))
        platform = platform_in(document["config"])
        if f"{platform}.config" not in SCHEMA["$defs"]:
            continue
        keys, schema = chance.choice(keys_of_platform(platform))
        changed = copy.deepcopy(document)
        if not _set_another_value(chance, changed["config"], keys, schema) or changed == document:
            continue
        tried.write_text(yaml.safe_dump(changed, sort_keys=False), "utf-8")
        accepted = not judge_file(tried).errors
        tried.unlink()
        if accepted:
            return file.stem.removeprefix("Pulumi."), keys, changed
    raise AssertionError("no change is accepted")
