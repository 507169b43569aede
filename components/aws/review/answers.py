# SPDX-License-Identifier: Apache-2.0
"""Implements `ReviewPlatform` (components/platform/review.py) for AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catalog.tables import table
from components.aws.review import access
from components.aws.review.abilities import abilities
from components.aws.review.costs import costs_of
from components.aws.review.network import network_of
from components.aws.review.words import covers, operation_words, resource_words
from components.platform.losses import loss_of
from components.platform.review import Ability, Costs, Loss, Network, ReviewedResource, ReviewPlatform, Snapshot


class AwsReview(ReviewPlatform):
    def network(self, side: Snapshot) -> Network:
        return network_of(side)

    def abilities(self, sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
        return abilities(sides)

    def statements(self, side: Snapshot) -> tuple[str, ...]:
        return access.statements(side)

    def without_statements(self, side: Snapshot, texts: frozenset[str]) -> Snapshot:
        return access.without_statements(side, texts)

    def operation_words(self, operations: frozenset[str]) -> str:
        return operation_words(operations)

    def resource_words(self, resources: frozenset[str]) -> str:
        return resource_words(resources)

    def covers(self, resource: str, other: str) -> bool:
        return covers(resource, other)

    def loss(self, resource: ReviewedResource) -> Loss | None:
        return loss_of(resource, table("aws_review")["loss"])

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        return costs_of(side, prices)
