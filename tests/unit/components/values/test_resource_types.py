# SPDX-License-Identifier: Apache-2.0
"""Columns of rows: each word for a part of a stack is in use, and paths of inputs lead to their values."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from components.values.projections import gives_public_address, input_values, prohibits_public_addresses
from components.values.resource_types import Part, all_resource_types


def test_every_word_for_a_part_is_that_of_a_type() -> None:
    assert {row.part for row in all_resource_types().values() if row.part} == set(get_args(Part))


@pytest.mark.parametrize(
    ("inputs", "values"),
    [
        ({}, []),
        ({"interfaces": None}, []),
        ({"interfaces": [{"public": "true"}, {"public": False}, {}]}, ["true", False]),
        ({"interfaces": {"public": ["a", "b"]}}, ["a", "b"]),
        ({"interfaces": "(unknown)"}, ["(unknown)"]),
    ],
)
def test_values_at_a_path(inputs: dict[str, Any], values: list[Any]) -> None:
    assert [*input_values(inputs, "interfaces.public")] == values


def test_public_addresses() -> None:
    template = "aws:ec2/launchTemplate:LaunchTemplate"
    assert gives_public_address(template, {"networkInterfaces": [{}, {"associatePublicIpAddress": "true"}]})
    assert not gives_public_address(template, {"networkInterfaces": [{"associatePublicIpAddress": "false"}]})
    assert not gives_public_address("aws:sns/topic:Topic", {"associatePublicIpAddress": True})
    assert prohibits_public_addresses("oci:Core/subnet:Subnet", {"prohibitInternetIngress": True})
    assert not prohibits_public_addresses("oci:Core/subnet:Subnet", {"prohibitPublicIpOnVnic": False})
