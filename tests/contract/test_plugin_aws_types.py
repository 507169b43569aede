# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of the local cloud's `aws` plugin, `pulumi_aws` and botocore."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args, get_origin

import botocore.session
import pytest
from pulumi import _types

from components.aws.types import SERVED_TYPES
from components.aws.types.functions import FUNCTIONS
from components.aws.types.templates import fill_template
from localcloud.aws.plugin.functions import PLACES
from localcloud.aws.plugin.plugin import LocalAws
from localcloud.aws.plugin.properties import AwsProperties
from localcloud.aws.plugin.shapes import MAPS, search_path, to_pulumi
from tests.support.aws_types import NOT_GIVEN, NOT_SHOWN, NOT_TAKEN, official

# A package of pulumi_aws warns of its own deprecated modules when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:.* has been deprecated:DeprecationWarning")

# Some shapes of botocore are recursive.
MOST_DEPTH = 6


def ours(token: str) -> AwsProperties:
    resource = LocalAws().resource(token)
    assert isinstance(resource, AwsProperties)
    return resource


def inputs_of(token: str) -> set[str]:
    return set(_types.input_type_py_to_pulumi_names(official(token, "Args")).values())


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_the_plugin_supports_every_input_and_no_others(token: str) -> None:
    # The provider itself adds `tagsAll`, from its default tags.
    taken = ours(token).inputs_of_api() - {"tagsAll"}
    assert inputs_of(token) - taken == NOT_TAKEN.get(token, frozenset())
    assert taken <= inputs_of(token)


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_the_plugin_returns_every_output_and_no_others(token: str) -> None:
    named = set(_types.resource_types(official(token)))
    hidden = NOT_SHOWN.get(token, frozenset()) | NOT_TAKEN.get(token, frozenset()) & named
    assert named - ours(token).outputs_of_api() == hidden
    assert ours(token).outputs_of_api() <= named


def test_every_row_names_inputs_of_its_type() -> None:
    for token, row in SERVED_TYPES.items():
        named = {
            path.split(".")[0]
            for path in {*row.replaced_by, *row.computed, *row.unordered, *row.one_of, *row.tags.split()}
        }
        assert named <= ours(token).inputs_of_api(), token


def _fields(kind: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every path of a structured input type, without indices, and its type."""
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
        for token in SERVED_TYPES
        for name in _maps(official(token, "Args"))
        if name not in NOT_TAKEN.get(token, frozenset())
    }
    assert named | {"tagsAll"} == MAPS


def _module_of(token: str) -> Any:
    package = token.split(":")[1].partition("/")[0]
    return import_module("pulumi_aws" if package == "index" else f"pulumi_aws.{package}")


def _python_function(token: str) -> Any:
    in_python = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", token.rpartition(":")[2])
    return getattr(_module_of(token), in_python)


@pytest.mark.parametrize("token", [*FUNCTIONS, *PLACES])
def test_every_function_exists(token: str) -> None:
    assert f"'{token}'" in inspect.getsource(_python_function(token))


def _complete(shape: Any, depth: int = 0) -> Any:
    """A response of AWS with every member."""
    if shape.type_name == "structure":
        return {name: _complete(member, depth + 1) for name, member in shape.members.items() if depth < MOST_DEPTH}
    return [_complete(shape.member, depth + 1)] if shape.type_name == "list" else "text"


def _in_pulumi(names: Iterable[str]) -> set[str]:
    return {re.sub(r"_([a-z0-9])", lambda letter: letter[1].upper(), name) for name in names}


@pytest.mark.parametrize("token", FUNCTIONS)
def test_every_output_of_a_look_up_is_returned(token: str) -> None:
    """By the real provider's names: a component that reads a missing one would get nothing, and no error."""
    lookup = FUNCTIONS[token]
    operation = botocore.session.get_session().get_service_model(lookup.service).operation_model(lookup.operation)
    found = search_path(fill_template(lookup.at, {"name": "text", "region": "here"}), _complete(operation.output_shape))
    given = set(to_pulumi(found[-1] if lookup.one else found, {})) | {"id", "region"}
    name = token.rpartition(":")[2]
    result = getattr(_module_of(token), f"{name[0].upper()}{name[1:]}Result")
    named = _in_pulumi(key for key, kind in vars(result).items() if isinstance(kind, property))
    asked = _in_pulumi(inspect.signature(_python_function(token)).parameters)
    assert named - given - asked == NOT_GIVEN.get(token, frozenset())
