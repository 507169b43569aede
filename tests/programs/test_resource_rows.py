# SPDX-License-Identifier: Apache-2.0
"""A review finds resources by the rows of their types: with a row of its own, another type is reviewed as the first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from catalog.platforms import require_capability
from components.platform.review import ReviewPlatform
from components.values import resource_types
from tests.programs.conftest import Record
from tests.support.examples import stack_file
from tests.support.reviews import recorded

EXAMPLES = ("oci-pytorch-ddp", "aws-dl1-resnet")


def _other_token(token: str) -> str:
    return token.replace("/", "Next/", 1)


@pytest.fixture
def other_types(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each type of a provider has a second token."""
    of_provider = resource_types.resource_types_of_provider

    def with_others(provider: str) -> dict[str, resource_types.ResourceType]:
        rows = of_provider(provider)
        return {**rows, **{_other_token(token): row for token, row in rows.items()}}

    monkeypatch.setattr(resource_types, "resource_types_of_provider", with_others)
    resource_types.resource_types_of_platform.cache_clear()
    yield
    resource_types.resource_types_of_platform.cache_clear()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.usefixtures("other_types")
def test_a_type_with_a_row_is_reviewed(name: str, record: Record) -> None:
    side = recorded(record(name), stack_file(name))
    other = replace(side, resources=tuple(replace(one, type=_other_token(one.type)) for one in side.resources))
    review = require_capability(side.platform, ReviewPlatform)
    network, (abilities,) = review.network(side), review.abilities([side])
    assert network.passages
    assert review.network(other) == network
    assert abilities
    assert review.abilities([other]) == (abilities,)
    statements = review.statements(side)
    assert review.statements(other) == statements
    assert review.statements(review.without_statements(other, frozenset(statements))) == ()
