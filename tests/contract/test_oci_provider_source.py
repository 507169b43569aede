# SPDX-License-Identifier: Apache-2.0
"""Compares catalog/oci_provider_calls.toml and catalog/replacement.toml with the source of Oracle's provider.

Run it with TRAINYARD_OCI_PROVIDER=PATH, a checkout or a bare repository of that provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from catalog.tables import table
from tests.support.go_source import GoFile, text_of

TABLE = table("oci_provider_calls")
STEPS = ("create", "read", "update", "delete")


def source_of(row: Mapping[str, Any]) -> GoFile:
    return GoFile(text_of(f"{TABLE['source']['folder']}/{row['source']}"))


def calls_of(row: Mapping[str, Any], step: str) -> frozenset[str]:
    """Every call that the row has for a step, in any case of its inputs."""
    given = [one.get(step, ()) for one in row.get("given", {}).values()]
    changed = row.get("changed", {}).values() if step == "update" else ()
    return frozenset().union(row.get(step, ()), *given, *changed)


def test_the_source_has_the_version_that_the_table_names() -> None:
    assert f'"{TABLE["source"]["version"]}"' in text_of("internal/globalvar/version.go")


@pytest.mark.parametrize("token", TABLE["types"])
def test_each_step_makes_the_calls_of_its_row(token: str) -> None:
    row = TABLE["types"][token]
    source, unreached = source_of(row), frozenset().union(*row.get("unreached", {}).values())
    for step in STEPS:
        assert calls_of(row, step) == source.step(step) - (unreached - calls_of(row, step)), step
    every = frozenset().union(*(calls_of(row, step) for step in STEPS))
    assert source.calls | every == every | unreached
    assert not every & unreached


@pytest.mark.parametrize("token", TABLE["types"])
def test_each_resource_waits_for_the_states_of_its_row(token: str) -> None:
    row = TABLE["types"][token]
    source = source_of(row)
    assert frozenset(row.get("ready", ())) == source.states("CreatedTarget")
    assert frozenset(row.get("gone", ())) == source.states("DeletedTarget")


@pytest.mark.parametrize("token", TABLE["functions"])
def test_each_function_makes_the_calls_of_its_row(token: str) -> None:
    row = TABLE["functions"][token]
    assert frozenset(row["read"]) == source_of(row).calls


@pytest.mark.parametrize("token", TABLE["types"])
def test_the_replacement_table_matches_force_new_in_the_source(token: str) -> None:
    named = _plain(table("replacement")[token].get("replace", ()))
    forced = _plain(source_of(TABLE["types"][token]).fields_with("ForceNew"))
    # If a block forces a replacement, its fields do, or the table names the block.
    assert not [path for path in forced if not _covered(path, named) and not _holds(path, named)]
    assert not [path for path in named if not _holds(path, forced)]


@pytest.mark.parametrize("token", TABLE["types"])
def test_computed_fields_match_the_source(token: str) -> None:
    source, named = source_of(TABLE["types"][token]), _plain(table("replacement")[token].get("computed", ()))
    computed = source.fields_with("Computed")
    assert not [path for path in _plain(computed & source.fields_with("Optional")) if not _covered(path, named)]
    assert not [path for path in named if not _holds(path, _plain(computed))]


def _plain(paths: Iterable[str]) -> set[str]:
    """Paths in a form that is the same for Terraform and Pulumi: without underscores, capitals and plurals of lists."""
    parts = (path.replace("_", "").lower().split(".") for path in paths)
    return {".".join(re.sub(r"(list)?s$|list$", "", part) for part in path) for path in parts}


def _covered(path: str, by: Iterable[str]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in by)


def _holds(path: str, others: Iterable[str]) -> bool:
    return any(_covered(one, {path}) for one in others)
