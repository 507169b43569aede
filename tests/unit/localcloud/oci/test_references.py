# SPDX-License-Identifier: Apache-2.0
"""The table of references agrees with the local operations, Oracle's models and the table of permissions."""

import re
from functools import cache

import pytest

from catalog.tables import table
from components.oci.iam.permissions import find_operation
from localcloud.oci import services
from localcloud.oci.authorization import CONDITIONS, STANDS_FOR
from localcloud.oci.operations import ApiOperation
from localcloud.oci.references import kinds_of, reference_rows
from tests.support.access_matrix import fields_of

TABLE = table("references")
BY_NAME = {row.name: row for row in services.service_operations()}
# Cases about resources that the local cloud lacks.
NOT_SERVED = frozenset({"local peering", "added local peering", "removed local peering", "security group"})


def _places(name: str) -> list[str]:
    rows = reference_rows(name)
    both = [*(place for place in rows if place != "own"), *([rows["own"]] if "own" in rows else [])]
    return [part for place in both for part in re.split(r" [|&+] ", place)]


@cache
def _known(row: ApiOperation) -> frozenset[str]:
    known = {f"{source}.{field}" for source, fields in fields_of(row).items() for field in fields}
    return frozenset(known | {place.removesuffix("[]") for place in known})


@pytest.mark.parametrize("name", TABLE["operations"])
def test_a_row_names_existing_fields_of_its_call(name: str) -> None:
    for place in _places(name):
        first = place.split(" > ")[0].replace("new.", "body.")
        if place.endswith("enableAutoLogCreation"):  # a flag, not a reference
            continue
        assert first.startswith("kept.") or first in _known(BY_NAME[name]), f"{name} has no {first}"
        assert kinds_of(place.rpartition(".")[2].rpartition(" ")[2].removesuffix("[]")), f"{place} refers to nothing"


@pytest.mark.parametrize("name", TABLE["operations"])
def test_a_row_has_the_permissions_of_its_call_in_the_catalog(name: str) -> None:
    needs = find_operation(STANDS_FOR.get(name, name))
    for place, takes in reference_rows(name).items():
        words = takes.split()
        if place != "own" and all(word.isupper() for word in words):
            assert set(words) <= needs.permissions, place
        elif place != "own":
            assert {" ".join(case.split()) for case in takes.split(",")} <= needs.conditional.keys(), place


def test_every_conditional_permission_is_handled() -> None:
    """A row of the table places it, or a condition decides it."""
    for name in BY_NAME:
        conditional = table("operations")["also"].get(STANDS_FOR.get(name, name), {})
        placed = {" ".join(case.split()) for takes in reference_rows(name).values() for case in takes.split(",")}
        read = {case for operation_name, case in CONDITIONS if operation_name == name}
        assert conditional.keys() <= placed | read | NOT_SERVED, name


def test_every_field_name_is_classified_as_reference_or_not() -> None:
    assert not TABLE["kinds"].keys() & TABLE["opaque"].keys()
    assert TABLE["operations"].keys() <= BY_NAME.keys()
