# SPDX-License-Identifier: Apache-2.0
"""Compares components/oci/types and catalog/oci_provider.toml with the source of Oracle's provider.

Run it with TRAINYARD_OCI_PROVIDER=PATH, a checkout or a bare repository of that provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from catalog.tables import table
from components.oci.deployer import STEPS, calls_of_type
from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS
from localcloud.oci.models import NEVER_SENT
from localcloud.oci.sdk import provider_clients
from tests.support.go_source import GoFile, names_in, text_of

PROVIDER = table("oci_provider")
SERVICES_SERVED = (
    "artifacts", "core", "datascience", "identity", "limits", "logging", "monitoring", "objectstorage", "vault"
)  # fmt: skip
_SCHEMA_OF = re.compile(r"DataSourceItemSchema\w*\((\w+)\(\)")
_SETS_TAGS = re.compile(r'\["system_tags"\] = |D\.Set\("system_tags"')


def source_of(file: str) -> GoFile:
    return GoFile(text_of(f"{PROVIDER['source']['folder']}/{file}"))


def test_the_source_has_the_version_that_the_table_names() -> None:
    assert f'"{PROVIDER["source"]["version"]}"' in text_of("internal/globalvar/version.go")


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_each_step_makes_the_calls_of_its_row(token: str) -> None:
    row = SERVED_TYPES[token]
    source, unreached = source_of(row.source), frozenset().union(*row.unreached.values())
    for step in STEPS:
        calls = frozenset(calls_of_type(token, (step,)))
        assert calls == source.step(step) - (unreached - calls), step
    every = frozenset(calls_of_type(token, STEPS))
    assert source.calls | every == every | unreached
    assert not every & unreached


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_each_resource_waits_for_the_states_of_its_row(token: str) -> None:
    row = SERVED_TYPES[token]
    source = source_of(row.source)
    assert row.ready == source.states("CreatedTarget")
    assert row.gone == source.states("DeletedTarget")


@pytest.mark.parametrize("token", FUNCTIONS)
def test_each_function_makes_the_calls_of_its_row(token: str) -> None:
    assert frozenset(FUNCTIONS[token].calls) == source_of(FUNCTIONS[token].source).calls


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_what_replaces_a_resource_matches_force_new_in_the_source(token: str) -> None:
    named = _plain(SERVED_TYPES[token].replaced_by)
    forced = _plain(source_of(SERVED_TYPES[token].source).fields_with("ForceNew"))
    # If a block forces a replacement, its fields do, or the table names the block.
    assert not [path for path in forced if not _covered(path, named) and not _holds(path, named)]
    assert not [path for path in named if not _holds(path, forced)]


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_computed_fields_match_the_source(token: str) -> None:
    source, named = source_of(SERVED_TYPES[token].source), _plain(SERVED_TYPES[token].computed)
    computed = source.fields_with("Computed")
    assert not [path for path in _plain(computed & source.fields_with("Optional")) if not _covered(path, named)]
    assert not [path for path in named if not _holds(path, _plain(computed))]


def test_the_provider_retries_all_but_the_statuses_of_the_table() -> None:
    """So a missing operation must be refused with one of those."""
    source = GoFile(text_of(PROVIDER["source"]["retries"])).functions["GetDefaultExpectedRetryDuration"]
    cases = re.findall(r"case ([\d, ]+):\n\t\treturn 0\n", source)
    assert sorted(int(status) for case in cases for status in case.split(", ")) == PROVIDER["retried"]["never"]


def test_the_clients_of_the_provider_are_those_of_the_table() -> None:
    folder = PROVIDER["source"]["clients"]
    names = (
        name for file in names_in(folder) for name in re.findall(r'RegisterOracleClient\("([^"]+)"', text_of(file))
    )
    assert frozenset(names) == provider_clients()


def test_no_answer_has_tags_that_a_data_source_cannot_store() -> None:
    """A data source that sets `system_tags` without a field for them fails as soon as the answer has some."""
    failing = set()
    for folder in SERVICES_SERVED:
        files = {name: text_of(name) for name in names_in(f"{PROVIDER['source']['folder']}/{folder}")}
        for name, text in files.items():
            resources = "".join(
                file for file in files.values() for one in _SCHEMA_OF.findall(text) if f"func {one}()" in file
            )
            if _SETS_TAGS.search(text) and '"system_tags": {' not in text + resources:
                failing.add(name.rpartition("/")[2])
    assert failing == {"vault_secrets_data_source.go", "core_byoasn_resource.go"}
    assert {("vault", "SecretSummary"): frozenset({"systemTags"})} == NEVER_SENT  # no operation about BYOASNs is served


def _plain(paths: Iterable[str]) -> set[str]:
    """Paths in a form that is the same for Terraform and Pulumi: without underscores, capitals and plurals of lists."""
    parts = (path.replace("_", "").lower().split(".") for path in paths)
    return {".".join(re.sub(r"(list)?s$|list$", "", part) for part in path) for path in parts}


def _covered(path: str, by: Iterable[str]) -> bool:
    return any(path == one or path.startswith(f"{one}.") for one in by)


def _holds(path: str, others: Iterable[str]) -> bool:
    return any(_covered(one, {path}) for one in others)
