# SPDX-License-Identifier: Apache-2.0
"""The schema and the model of each platform agree, the schema explains every key, and editors get the whole schema."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import yaml
from jsonschema.validators import Draft202012Validator

from catalog import frameworks
from catalog.platforms import platform_folder, platform_spellings, platforms, require_capability
from schemas import model
from schemas.compose import COMPOSED, compose_for_editors, pretty_json, schema_of
from schemas.convert import camel_case, default_of, unstructure_model
from schemas.load import NAMESPACE, region_key
from schemas.model import Secret, Stack
from schemas.shape import shape_problems
from schemas.stack_file import StackFile

ROOT = Path(__file__).parents[2]
# A type of the model whose file form is not a mapping of its fields, or whose keys are free.
SCALARS = (str, int, float, bool, Secret)


class Compared:
    """The model and the schema of one platform, side by side."""

    def __init__(self, platform: str) -> None:
        self.platform, self.kind, self.schema = (
            platform,
            require_capability(platform, StackFile).model,
            schema_of(platform),
        )
        self.pairs = list(self._pairs(self.kind, self.schema["$defs"]["config"], platform))

    def resolved(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """A subschema merged with the definition that it refers to. Keys beside the reference take precedence."""
        if "$ref" not in part:
            return dict(part)
        return {**self.resolved(self.schema["$defs"][part["$ref"].rsplit("/", 1)[-1]]), **part}

    def as_mapping(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """The subschema for a mapping, where a shorthand is allowed too."""
        whole = self.resolved(part)
        branches = (self.resolved(branch) for branch in whole.get("anyOf", ()))
        return next((branch for branch in branches if branch.get("type") == "object"), whole)

    def properties(self, kind: Any, part: Mapping[str, Any]) -> dict[str, Any]:
        if kind is not self.kind:
            return dict(part["properties"])
        ours = {key.removeprefix(NAMESPACE): value for key, value in part["properties"].items() if NAMESPACE in key}
        region = region_key(self.platform)
        return {**ours, "region": part["properties"][region]} if region else ours

    def columns(self, kind: Any) -> list[Any]:
        """The fields that a file may contain: not the stack's name, which is in the file's name, and a region only on
        some platforms.
        """
        left_out = {"name"} if region_key(self.platform) else {"name", "region"}
        return [column for column in fields(kind) if kind is not self.kind or column.name not in left_out]

    def _pairs(self, kind: Any, part: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """Every dataclass of the model below `kind`, with the subschema at the same path."""
        yield where, kind, self.as_mapping(part)
        for key, hint in keys(kind).items():
            below = self.properties(kind, self.as_mapping(part)).get(key)
            if below is not None:
                yield from self._below(hint, below, f"{where}.{key}")

    def _below(self, hint: Any, part: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        for choice in alternatives(hint):
            if str(get_origin(choice)) == "<class 'collections.abc.Mapping'>":
                yield from self._below(get_args(choice)[1], self.as_mapping(part)["additionalProperties"], f"{where}.*")
            elif get_origin(choice) is tuple:
                yield from self._below(get_args(choice)[0], self.resolved(part)["items"], f"{where}[]")
            elif is_dataclass(choice) and choice is not Secret and "properties" in self.as_mapping(part):
                yield from self._pairs(choice, part, where)


def alternatives(hint: Any) -> list[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return [part for part in get_args(hint) if part is not types.NoneType]
    return [hint]


def keys(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {camel_case(column.name): hints[column.name] for column in fields(kind)}


COMPARED = {platform: Compared(platform) for platform in platforms()}
PAIRS = [(one, *pair) for one in COMPARED.values() for pair in one.pairs]
every_pair = pytest.mark.parametrize(("one", "where", "kind", "part"), PAIRS, ids=[where for _, where, _, _ in PAIRS])


def dataclasses_of(module: Any) -> set[type]:
    found = {value for value in vars(module).values() if isinstance(value, type) and is_dataclass(value)}
    return {value for value in found if value.__module__ == module.__name__}


def test_every_dataclass_of_the_models_was_compared() -> None:
    """A platform's subclass counts for the neutral class."""
    named = dataclasses_of(model)
    for platform in platforms():
        named |= dataclasses_of(import_module(f"components.{platform_folder(platform)}.stack"))
    kinds = {kind for _, _, kind, _ in PAIRS}
    # A platform may have a job of its own.
    assert named - kinds - {model.Job} == {Secret, model.PortRange, model.Was, Stack}


@every_pair
def test_schema_and_model_name_the_same_keys(one: Compared, where: str, kind: Any, part: dict[str, Any]) -> None:
    assert set(one.properties(kind, part)) == {camel_case(column.name) for column in one.columns(kind)}
    assert part["additionalProperties"] is False


@every_pair
def test_schema_and_model_require_the_same_keys(one: Compared, where: str, kind: Any, part: dict[str, Any]) -> None:
    demanded = {camel_case(column.name) for column in one.columns(kind) if default_of(column) is MISSING}
    in_schema = {key.removeprefix(NAMESPACE) for key in part.get("required", ())}
    # The region's key is the platform's; load.py demands it.
    assert in_schema == demanded - ({"region"} if kind is one.kind else set())


@every_pair
def test_schema_and_model_have_the_same_defaults(one: Compared, where: str, kind: Any, part: dict[str, Any]) -> None:
    for column in one.columns(kind):
        default = default_of(column)
        said = one.resolved(one.properties(kind, part)[camel_case(column.name)]).get("default", MISSING)
        if default is MISSING or default is None or is_dataclass(default):
            assert said is MISSING, column.name
        else:
            assert said == unstructure_model(default), column.name


@every_pair
def test_schema_and_model_allow_the_same_values(one: Compared, where: str, kind: Any, part: dict[str, Any]) -> None:
    for key, hint in keys(kind).items():
        below = one.resolved(one.properties(kind, part).get(key, {}))
        for choice in alternatives(hint):
            if get_origin(choice) is tuple:
                choice, below = get_args(choice)[0], one.resolved(below.get("items", {}))
            if get_origin(choice) is Literal:
                assert tuple(below["enum"]) == get_args(choice), key


def described(part: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key the schema knows, wherever it is defined, and the keys a team names itself."""
    if isinstance(part, Mapping):
        if isinstance(free := part.get("additionalProperties"), Mapping):
            yield f"{where}/*", dict(free)
        for table_name in ("properties", "patternProperties"):
            for key, value in part.get(table_name, {}).items():
                # The condition that selects a platform's section is no key.
                if isinstance(value, Mapping) and "const" not in value and "doNotSuggest" not in value:
                    yield f"{where}/{key}", dict(value)
        for key, value in part.items():
            yield from described(value, f"{where}/{key}")
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from described(value, f"{where}/{index}")


SCHEMA = compose_for_editors()
OCI = schema_of("oci")
KEYS = list(described(SCHEMA))


def test_the_schema_for_editors_is_composed_of_the_sections() -> None:
    assert COMPOSED.read_text("utf-8") == pretty_json(SCHEMA) + "\n", "run: python -m schemas.compose"


@pytest.mark.parametrize("platform", platforms())
def test_the_editors_schema_validates_a_file_like_check_does(platform: str) -> None:
    """One key of each platform, in a file of this one. Keys of another platform are a warning, so no error."""
    whole = Draft202012Validator(SCHEMA)
    names = {"trainyard:platform": platform, "trainyard:team": "a", "trainyard:environment": "b"}
    every = {key for one in platforms() for key in schema_of(one)["$defs"]["config"]["properties"]}
    for key in sorted(every):
        for value in ("vpc-0a1b", {"runs": "a"}, {"vpc": "vpc-0a1b"}, {"vcn": "ocid1.vcn.oc1.iad.a"}, 7):
            file = {"config": {key: value, **names}}
            errors = [problem for problem in shape_problems(file) if problem.code != "TY018"]
            assert whole.is_valid(file) == (not errors), (file, errors)


@pytest.mark.parametrize("file", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda file: file.name)
def test_an_editor_finds_no_error_in_an_example(file: Path) -> None:
    content = yaml.safe_load(file.read_text("utf-8"))
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(content)] == []


@pytest.mark.parametrize(("where", "part"), KEYS, ids=[where for where, _ in KEYS])
def test_every_key_has_a_description_and_valid_examples(where: str, part: dict[str, Any]) -> None:
    assert part["description"].rstrip().endswith(".")
    assert part["examples"]
    validator = Draft202012Validator({**part, "$defs": SCHEMA["$defs"]})
    for example in part["examples"]:
        assert not list(validator.iter_errors(example)), example


@pytest.mark.parametrize("name", frameworks.framework_names())
def test_an_editor_knows_the_roles_options_and_ports_of_built_in_frameworks(name: str) -> None:
    job = SCHEMA["$defs"]["job"]["properties"]
    for strategy in frameworks.framework_document(name).get("strategies") or (None,):
        row = frameworks.framework_row(name, strategy)
        texts = {
            "roles": {role: spec.why for role, spec in row.roles.items()},
            "options": {option: spec.meaning for option, spec in row.options.items()},
            "ports": {port.label: port.why for port in row.ports},
        }
        for kind, known in texts.items():
            for key, text in known.items():
                description = job[kind]["properties"][key]["description"]
                assert text in description
                assert re.search(rf"\b{name}\b", description)


def test_an_editor_completes_the_names_of_frameworks_and_strategies() -> None:
    job = SCHEMA["$defs"]["job"]["properties"]
    assert set(job["framework"]["examples"]) == set(frameworks.framework_names())
    strategies = {
        one
        for name in frameworks.framework_names()
        for one in frameworks.framework_document(name).get("strategies", ())
    }
    assert set(job["strategy"]["examples"]) == strategies


def test_the_schema_is_valid_and_every_pattern_is_explained() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    text = json.dumps(SCHEMA)
    assert text.count('"pattern":') == text.count('"patternErrorMessage":')


def test_schema_and_catalog_know_the_same_platforms_and_frameworks() -> None:
    config = OCI["$defs"]["config"]["properties"]
    assert config["trainyard:platform"]["enum"] == list(platform_spellings())
    said = SCHEMA["$defs"]["job"]["properties"]["framework"]["description"]
    assert all(name in said for name in frameworks.framework_names())
