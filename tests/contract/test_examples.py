# SPDX-License-Identifier: Apache-2.0
"""The example stacks are valid and explained, and together they use every key of stack files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from schemas.checks import check_meaning
from schemas.compose import schema_of
from schemas.facts import gather_facts
from tests.support.examples import ALL_EXAMPLES, EXAMPLES, STACKS, any_stack, stack_file

SCHEMA = schema_of("oci")
SCRIPTS = sorted(STACKS.glob("examples/**/*.py"))

# Keys no example may use, and why.
SECRETS = {"#/$defs/vault/properties/secrets", "#/$defs/secret/properties/secure"}
PULUMIS = {f"#/properties/{key}" for key in ("encryptionsalt", "secretsprovider", "encryptedkey", "environment")}
# For renames: no example was renamed.
# what only ADS's own images read; what scripts need that do not write to
# TRAINYARD_OUTPUT, as all examples do.
NOT_SHOWN = (
    {
        # Many runs at once give a note about the account's limit, and examples have no findings.
        "#/$defs/run/properties/each",
        "#/$defs/run/properties/atMost",
        *(f"#/$defs/{kind}/properties/was" for kind in ("job", "run", "roleRow")),
    }
    | {
        f"#/$defs/job/properties/{key}"
        for key in (
            "options/properties/adsDriver",
            # For scripts of other systems, which tests/bring has.
            "speaks",
            "keep",
            # Every example has it on, as it is by default.
            "preflight",
            # Every example trains with its framework's packages only, without reserved machines.
            "requirements",
            "capacityReservation",
            # OCI charges for the machines of a target, and a job on one gets a note.
            "computeTarget",
        )
    }
    | {"#/$defs/config/properties/trainyard:computeTargets"}
    # A waiver expires, so an example with one would become invalid.
    | {
        "#/$defs/config/properties/trainyard:waivers",
        *(f"#/$defs/waiver/properties/{key}" for key in ("reason", "until")),
    }
    | {f"#/$defs/computeTarget/properties/{key}" for key in ("shape", "instances", "bootVolumeGb", "existing")}
    | {f"#/$defs/requirements/anyOf/properties/{key}" for key in ("file", "build")}
    # OCI charges for what a flow log stores.
    | {"#/$defs/network/properties/flowLog"}
    | {f"#/$defs/flowLog/anyOf/properties/{key}" for key in ("group", "log")}
)


def resolved(schema: Mapping[str, Any], at: str) -> tuple[Mapping[str, Any], str]:
    """The schema that a `$ref` points to, and its pointer."""
    while "$ref" in schema:
        at = schema["$ref"]
        schema = SCHEMA["$defs"][at.removeprefix("#/$defs/")]
    return schema, at


def objects(schema: Mapping[str, Any], at: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The schema itself and its alternatives, as far as they describe objects."""
    schema, at = resolved(schema, at)
    yield schema, at
    for other in schema.get("anyOf", ()):
        yield from objects(other, f"{at}/anyOf")


def used(value: Any, schema: Mapping[str, Any], at: str = "#") -> Iterator[str]:
    """Pointers of the keys that a value uses."""
    for kind, where in objects(schema, at):
        if isinstance(value, Mapping):
            known = kind.get("properties", {})
            for key, item in value.items():
                if key in known:
                    yield f"{where}/properties/{key}"
                    yield from used(item, known[key], f"{where}/properties/{key}")
                elif isinstance(kind.get("additionalProperties"), Mapping):
                    yield from used(item, kind["additionalProperties"], f"{where}/*")
        elif isinstance(value, list) and "items" in kind:
            for item in value:
                yield from used(item, kind["items"], f"{where}/items")


def declared(schema: Any, at: str) -> Iterator[str]:
    """Pointers of every key below."""
    if isinstance(schema, Mapping):
        for key, value in schema.get("properties", {}).items():
            yield f"{at}/properties/{key}"
            yield from declared(value, f"{at}/properties/{key}")
        for other in schema.get("anyOf", ()):
            yield from declared(other, f"{at}/anyOf")


def every_key() -> set[str]:
    below = (declared(schema, f"#/$defs/{name}") for name, schema in SCHEMA["$defs"].items())
    return {*declared(SCHEMA, "#"), *(key for keys in below for key in keys)}


def test_together_the_examples_use_every_key() -> None:
    seen = {key for name in EXAMPLES for key in used(yaml.safe_load(stack_file(name).read_text("utf-8")), SCHEMA)}
    assert seen <= every_key()
    assert every_key() - seen == SECRETS | PULUMIS | NOT_SHOWN


def test_keys_that_no_example_uses_have_a_reason() -> None:
    texts = [stack_file(name).read_text("utf-8") for name in EXAMPLES]
    # Users could not decrypt a secret of the examples, so these show the command that sets one.
    assert any("trainyard secret set oci-dask-ml vault.secrets." in text for text in texts)


@pytest.mark.parametrize("name", ALL_EXAMPLES)
def test_an_example_passes_every_check(name: str) -> None:
    judged = check_meaning(any_stack(name), gather_facts(any_stack(name), STACKS))
    # Findings that are allowed in examples: a platform without deployment, and keys of a second platform.
    assert [one for one in judged if one.code not in ("TY902", "TY018")] == []


@pytest.mark.parametrize("name", ALL_EXAMPLES)
def test_an_example_explains_itself_and_names_its_schema(name: str) -> None:
    lines = stack_file(name).read_text("utf-8").splitlines()
    assert "# yaml-language-server: $schema=../schemas/stack.schema.json" in lines[:2]
    assert sum(line.lstrip().startswith("#") for line in lines) >= 4


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: str(script.relative_to(STACKS)))
def test_a_training_script_is_python_and_prints_its_loss(script: Any) -> None:
    source = script.read_text("utf-8")
    ast.parse(source)
    compile(source, str(script), "exec")
    # Examples that share a folder share the module that prints.
    beside = [other.read_text("utf-8") for other in script.parent.glob("*.py") if f"import {other.stem}\n" in source]
    assert any(re.search(r'print\(\s*f".*loss \{', text) for text in (source, *beside))


def test_every_code_folder_is_used_by_an_example() -> None:
    named = {job.code.folder for name in ALL_EXAMPLES for job in any_stack(name).jobs.values() if job.code}
    folders = {f"./examples/{folder.name}" for folder in (STACKS / "examples").iterdir()}
    assert folders <= named
