# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of OCI's types, what the local cloud's plugin makes of them, and `pulumi_oci`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, get_args, get_origin

import pytest
from pulumi import _types

from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS
from components.values.resource_types import resource_types_of_provider
from localcloud.oci.plugin.plugin import LocalOci
from localcloud.oci.plugin.table import MAPS, OciResource

# Inputs of the real provider that the local cloud's plugin refuses or leaves out, with the reasons.
_INPUTS_NOT_TAKEN: Mapping[str, frozenset[str]] = {
    "oci:ObjectStorage/bucket:Bucket": frozenset({"retentionRules"}),  # The local cloud has no retention rules.
    # Keys and copies between regions have no local counterpart.
    "oci:ObjectStorage/storageObject:StorageObject": frozenset({"opcSseKmsKeyId", "sourceUriDetails"}),
}
_OUTPUTS_NOT_SHOWN: Mapping[str, frozenset[str]] = {
    **_INPUTS_NOT_TAKEN,
    "oci:ObjectStorage/storageObject:StorageObject": frozenset({"opcSseKmsKeyId", "sourceUriDetails", "workRequestId"}),
    # The real provider's own bookkeeping, not OCI's.
    "oci:Identity/policy:Policy": frozenset({"ETag", "lastUpdateETag", "policyHash"}),
    "oci:DataScience/job:Job": frozenset({"artifactContentMd5", "artifactLastModified", "emptyArtifact"}),
}
# Oracle's descriptions and its schema differ: the text lacks "(Updatable)" although no new resource is forced, or has
# both.
_SCHEMA_SAYS_OTHERWISE: Mapping[str, frozenset[str]] = {
    "oci:Core/vcn:Vcn": frozenset(
        {"byoipv6cidrDetails", "ipv6privateCidrBlocks", "isIpv6enabled", "isOracleGuaAllocationEnabled"}
    ),
    "oci:Core/subnet:Subnet": frozenset({"ipv4cidrBlocks"}),
    "oci:ObjectStorage/storageObject:StorageObject": frozenset({"contentMd5"}),
}
# Its rules are changed as a whole, and its descriptions lack the word.
_WITHOUT_THE_WORD = "oci:Core/networkSecurityGroupSecurityRule:NetworkSecurityGroupSecurityRule"


def _official(token: str, suffix: str = "") -> Any:
    _, path, name = token.split(":")
    return getattr(import_module(f"pulumi_oci.{path.split('/')[0].lower()}"), f"{name}{suffix}")


def _ours(token: str) -> OciResource:
    resource = LocalOci().resource(token)
    assert isinstance(resource, OciResource)
    return resource


def _inputs(token: str) -> set[str]:
    return set(_types.input_type_py_to_pulumi_names(_official(token, "Args")).values())


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_the_plugin_supports_every_input(token: str) -> None:
    assert _inputs(token) - _ours(token).inputs_of_api() == _INPUTS_NOT_TAKEN.get(token, frozenset())


@pytest.mark.parametrize("token", SERVED_TYPES)
def test_the_plugin_returns_every_output(token: str) -> None:
    shown = _ours(token).outputs_of_api() | _ours(token).inputs_of_api()
    assert set(_types.resource_types(_official(token))) - shown == _OUTPUTS_NOT_SHOWN.get(token, frozenset())


@pytest.mark.parametrize("token", resource_types_of_provider("oci"))
def test_the_row_of_a_type_names_real_properties(token: str) -> None:
    row = resource_types_of_provider("oci")[token]
    named = {
        path.split(".")[0] for path in {*row.replaced_by, *row.computed, *row.unordered, *row.one_of, *row.tags.split()}
    }
    assert named <= _inputs(token)


@pytest.mark.parametrize("token", [token for token in SERVED_TYPES if token != _WITHOUT_THE_WORD])
def test_what_replaces_a_resource_agrees_with_oracles_texts(token: str) -> None:
    arguments = _official(token, "Args")
    texts = {
        name: getattr(arguments, python).__doc__ or ""
        for python, name in _types.input_type_py_to_pulumi_names(arguments).items()
    }
    updatable = {name for name, text in texts.items() if "(Updatable)" in text}
    replaced = {path.split(".")[0] for path in resource_types_of_provider("oci")[token].replaced_by}
    assert set(texts) - updatable ^ replaced == _SCHEMA_SAYS_OTHERWISE.get(token, frozenset())


def _maps(arguments: Any) -> Iterator[str]:
    """Names of inputs, at any depth, whose keys are the user's own."""
    for name, kind in _types.input_type_types(arguments).items():
        if get_origin(kind) is Sequence:
            kind = get_args(get_args(kind)[0])[0]
        if get_origin(kind) is Mapping:
            yield name
        elif _types.is_input_type(kind):
            yield from _maps(kind)


def test_the_plugin_knows_every_map() -> None:
    """In a map, every key counts. In an object, OCI fills in missing fields. A value alone does not show its kind."""
    assert {name for token in SERVED_TYPES for name in _maps(_official(token, "Args"))} - {"opcMeta"} == MAPS


@pytest.mark.parametrize("token", FUNCTIONS)
def test_every_function_exists(token: str) -> None:
    _, path, name = token.split(":")
    in_python = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    assert callable(getattr(import_module(f"pulumi_oci.{path.split('/')[0].lower()}"), in_python))
