# SPDX-License-Identifier: Apache-2.0
"""stack.schema.json and schemas/model.py say the same, and the schema explains every key."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from jsonschema.validators import Draft202012Validator

from catalog import frameworks
from catalog.tables import table
from schemas.convert import camel, default_of, unstructure
from schemas.load import NAMESPACE
from schemas.model import Secret, Stack
from schemas.shape import schema

SCHEMA = schema()
# A type of the model whose file form is not a mapping of its fields, or whose keys are free.
SCALARS = (str, int, float, bool, Secret)


def resolved(part: Mapping[str, Any]) -> dict[str, Any]:
    """A subschema with the definition it refers to; what stands beside the reference wins."""
    if "$ref" not in part:
        return dict(part)
    return {**resolved(SCHEMA["$defs"][part["$ref"].rsplit("/", 1)[-1]]), **part}


def as_mapping(part: Mapping[str, Any]) -> dict[str, Any]:
    """The subschema for a mapping, where a shorthand is allowed too."""
    whole = resolved(part)
    return next((resolved(branch) for branch in whole.get("anyOf", ()) if "properties" in resolved(branch)), whole)


def alternatives(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [part for part in get_args(hint) if part is not types.NoneType]
    return [hint]


def pairs(kind: Any, part: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every dataclass of the model below `kind`, with the subschema of the same place."""
    yield where, kind, as_mapping(part)
    for key, hint in keys(kind).items():
        below = properties(kind, as_mapping(part)).get(key)
        if below is not None:
            yield from _below(hint, below, f"{where}.{key}")


def _below(hint: Any, part: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for choice in alternatives(hint):
        if get_origin(choice) is Mapping or str(get_origin(choice)) == "<class 'collections.abc.Mapping'>":
            yield from _below(get_args(choice)[1], resolved(part)["additionalProperties"], f"{where}.*")
        elif get_origin(choice) is tuple:
            yield from _below(get_args(choice)[0], resolved(part)["items"], f"{where}[]")
        elif is_dataclass(choice) and choice is not Secret and "properties" in as_mapping(part):
            yield from pairs(choice, part, where)


def keys(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {camel(column.name): hints[column.name] for column in fields(kind)}


def properties(kind: Any, part: Mapping[str, Any]) -> dict[str, Any]:
    if kind is not Stack:
        return dict(part["properties"])
    ours = {key.removeprefix(NAMESPACE): value for key, value in part["properties"].items() if NAMESPACE in key}
    return {**ours, "region": part["properties"]["oci:region"]}


PAIRS = list(pairs(Stack, SCHEMA["$defs"]["config"], "config"))


def columns(kind: Any) -> list[Any]:
    """The fields that stand in a file; the stack's own name is in the file's name."""
    return [column for column in fields(kind) if (kind, column.name) != (Stack, "name")]


def test_every_dataclass_of_the_model_was_compared() -> None:
    from schemas import model

    named = {value for value in vars(model).values() if isinstance(value, type) and is_dataclass(value)}
    assert {kind for _, kind, _ in PAIRS} == named - {Secret, model.PortRange, model.Was}


@pytest.mark.parametrize(("where", "kind", "part"), PAIRS, ids=[where for where, _, _ in PAIRS])
def test_schema_and_model_name_the_same_keys(where: str, kind: Any, part: dict[str, Any]) -> None:
    assert set(properties(kind, part)) == {camel(column.name) for column in columns(kind)}
    assert part["additionalProperties"] is False


@pytest.mark.parametrize(("where", "kind", "part"), PAIRS, ids=[where for where, _, _ in PAIRS])
def test_schema_and_model_demand_the_same_keys(where: str, kind: Any, part: dict[str, Any]) -> None:
    demanded = {camel(column.name) for column in columns(kind) if default_of(column) is MISSING}
    in_schema = {key.removeprefix(NAMESPACE) for key in part.get("required", ())}
    # The region's key is the platform's; load.py demands it.
    assert in_schema == demanded - ({"region"} if kind is Stack else set())


@pytest.mark.parametrize(("where", "kind", "part"), PAIRS, ids=[where for where, _, _ in PAIRS])
def test_schema_and_model_have_the_same_defaults(where: str, kind: Any, part: dict[str, Any]) -> None:
    for column in columns(kind):
        default = default_of(column)
        said = resolved(properties(kind, part)[camel(column.name)]).get("default", MISSING)
        if default is MISSING or default is None or is_dataclass(default):
            assert said is MISSING, column.name
        else:
            assert said == unstructure(default), column.name


@pytest.mark.parametrize(("where", "kind", "part"), PAIRS, ids=[where for where, _, _ in PAIRS])
def test_schema_and_model_allow_the_same_words(where: str, kind: Any, part: dict[str, Any]) -> None:
    for key, hint in keys(kind).items():
        below = resolved(properties(kind, part).get(key, {}))
        for choice in alternatives(hint):
            if get_origin(choice) is tuple:
                choice, below = get_args(choice)[0], resolved(below.get("items", {}))
            if get_origin(choice) is Literal:
                assert tuple(below["enum"]) == get_args(choice), key


def described(part: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key the schema knows, wherever it is defined, and the keys a team names itself."""
    if isinstance(part, Mapping):
        if isinstance(free := part.get("additionalProperties"), Mapping):
            yield f"{where}/*", dict(free)
        for table_name in ("properties", "patternProperties"):
            for key, value in part.get(table_name, {}).items():
                if isinstance(value, Mapping):
                    yield f"{where}/{key}", dict(value)
        for key, value in part.items():
            yield from described(value, f"{where}/{key}")
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from described(value, f"{where}/{index}")


KEYS = list(described(SCHEMA))


@pytest.mark.parametrize(("where", "part"), KEYS, ids=[where for where, _ in KEYS])
def test_every_key_has_a_description_and_valid_examples(where: str, part: dict[str, Any]) -> None:
    assert part["description"].rstrip().endswith(".")
    assert part["examples"]
    validator = Draft202012Validator({**part, "$defs": SCHEMA["$defs"]})
    for example in part["examples"]:
        assert not list(validator.iter_errors(example)), example


def built_in(kind: str) -> dict[str, str]:
    """What the catalog's frameworks call their roles, options or ports, and what each says of it."""
    said: dict[str, dict[str, list[str]]] = {}
    for name in frameworks.names():
        for strategy in frameworks.document(name).get("strategies") or (None,):
            row = frameworks.framework(name, strategy)
            texts = {
                "roles": {role: f"{spec.why}." for role, spec in row.roles.items()},
                "options": {option: spec.meaning for option, spec in row.options.items()},
                "ports": {port.label: f"{port.why}." for port in row.ports},
            }[kind]
            for key, text in texts.items():
                named = said.setdefault(key, {}).setdefault(text, [])
                named += [name] if name not in named else []
    return {key: " ".join(f"{', '.join(of)}: {text}" for text, of in texts.items()) for key, texts in said.items()}


@pytest.mark.parametrize("kind", ["roles", "options", "ports"])
def test_an_editor_knows_what_the_built_in_frameworks_know(kind: str) -> None:
    in_schema = SCHEMA["$defs"]["job"]["properties"][kind]["properties"]
    assert {key: part["description"] for key, part in in_schema.items()} == built_in(kind)


def test_an_editor_completes_the_names_of_frameworks_and_strategies() -> None:
    job = SCHEMA["$defs"]["job"]["properties"]
    assert set(job["framework"]["examples"]) == set(frameworks.names())
    strategies = {one for name in frameworks.names() for one in frameworks.document(name).get("strategies", ())}
    assert set(job["strategy"]["examples"]) == strategies


def test_the_schema_is_a_schema_and_every_pattern_says_what_it_means() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    text = json.dumps(SCHEMA)
    assert text.count('"pattern":') == text.count('"patternErrorMessage":')


def test_schema_and_catalog_know_the_same_platforms_and_frameworks() -> None:
    config = SCHEMA["$defs"]["config"]["properties"]
    assert config["trainyard:platform"]["enum"] == list(table("platforms"))
    said = SCHEMA["$defs"]["job"]["properties"]["framework"]["description"]
    assert all(name in said for name in frameworks.names())
