# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of the local cloud's `aws` plugin, the replacement table, `pulumi_aws` and botocore."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args, get_origin

import pytest
from pulumi import _types

from catalog.tables import table
from localcloud.aws.plugin.functions import FUNCTIONS, PLACES
from localcloud.aws.plugin.plugin import LocalAws
from localcloud.aws.plugin.properties import AwsProperties
from localcloud.aws.plugin.shapes import MAPS
from localcloud.aws.plugin.types import ROWS
from tests.support.aws_types import NOT_SHOWN, NOT_TAKEN, official

# A package of pulumi_aws warns of its own deprecated modules when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated:DeprecationWarning")


def ours(token: str) -> AwsProperties:
    resource = LocalAws().resource(token)
    assert isinstance(resource, AwsProperties)
    return resource


def inputs_of(token: str) -> set[str]:
    return set(_types.input_type_py_to_pulumi_names(official(token, "Args")).values())


@pytest.mark.parametrize("token", ROWS)
def test_every_input_is_taken_and_none_is_invented(token: str) -> None:
    # `tagsAll` is what the provider itself adds where it has tags of its own.
    taken = ours(token).inputs_of_api() - {"tagsAll"}
    assert inputs_of(token) - taken == NOT_TAKEN.get(token, frozenset())
    assert taken <= inputs_of(token)


@pytest.mark.parametrize("token", ROWS)
def test_every_output_is_shown_and_none_is_invented(token: str) -> None:
    named = set(_types.resource_types(official(token)))
    hidden = NOT_SHOWN.get(token, frozenset()) | NOT_TAKEN.get(token, frozenset()) & named
    assert named - ours(token).outputs_of_api() == hidden
    assert ours(token).outputs_of_api() <= named


def test_every_row_is_in_the_replacement_table_and_names_its_inputs() -> None:
    rows = {token: row for token, row in table("replacement").items() if token.startswith("aws:")}
    assert set(rows) == set(ROWS)
    for token, row in rows.items():
        # `one_of` has several paths in one text.
        named = {path.split(".")[0] for paths in row.values() for text in paths for path in text.split()}
        assert named <= ours(token).inputs_of_api(), token


def _fields(kind: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every path of an input type that has parts, without indices, and the type of what is there."""
    if get_origin(kind) is Sequence:
        kind = get_args(get_args(kind)[0])[0]
    if _types.is_input_type(kind):
        for name, inner in _types.input_type_types(kind).items():
            yield f"{path}.{name}", inner
            yield from _fields(inner, f"{path}.{name}")


def _maps(arguments: Any) -> Iterator[str]:
    for name, kind in _types.input_type_types(arguments).items():
        for path, inner in ((name, kind), *_fields(kind, name)):
            if get_origin(inner) is Mapping:
                yield path.rpartition(".")[2]


def test_the_plugin_knows_every_map() -> None:
    """Keys of a map are the user's own, so every key counts. Fields of an object have the API's names."""
    named = {
        name
        for token in ROWS
        for name in _maps(official(token, "Args"))
        if name not in NOT_TAKEN.get(token, frozenset())
    }
    assert named | {"tagsAll"} == MAPS


@pytest.mark.parametrize("token", [*FUNCTIONS, *PLACES])
def test_every_function_exists(token: str) -> None:
    _, path, name = token.split(":")
    package = path.split("/")[0]
    in_python = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    found = getattr(import_module("pulumi_aws" if package == "index" else f"pulumi_aws.{package}"), in_python)
    assert f"'{token}'" in inspect.getsource(found)
