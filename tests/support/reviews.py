# SPDX-License-Identifier: Apache-2.0
"""Snapshots for tests of reviews, made of a test's own resources or of recorded programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from catalog.platforms import require_capability
from components.plan.build import plan_of
from components.plan.show import to_plain_values
from components.platform.review import SECRET, UNKNOWN, ReviewedResource, ReviewPlatform, Snapshot
from schemas.judge import judge_file
from tests.support.recorder.answers import identify
from tests.support.recorder.client import Recording
from trainyard.review.access_changes import compare_abilities


def resource(token: str, called: str = "one", /, **inputs: Any) -> ReviewedResource:
    """A resource with this name, and an id that inputs of other resources may contain."""
    urn = f"urn:pulumi:vision-dev::trainyard::{token}::{called}"
    return ReviewedResource(token, called, urn, "", inputs, id=id_of(token, called))


def id_of(token: str, called: str = "one") -> str:
    return f"ocid1.{token.rpartition(':')[2].lower()}.oc1..{called}"


def recorded(recording: Recording, file: Path) -> Snapshot:
    """The snapshot of a stack whose program was recorded."""
    plan = plan_of(judge_file(file))
    rows = tuple(
        ReviewedResource(
            type=row.type,
            name=row.name,
            urn=row.urn,
            parent=row.parent,
            inputs=_masked(row.inputs),
            protect=row.protect,
            retain=row.retain,
            replaced_for=row.replaced_for,
            ignored=row.ignored,
            id=identify(row.type, row.name, row.inputs) if row.custom and not row.type.startswith("pulumi:") else "",
        )
        for row in recording.resources
    )
    return Snapshot(plan.stack, plan.platform, to_plain_values(plan), rows)


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "(secret)" in value:
            return SECRET
        return UNKNOWN if "(unknown)" in value else {key: _masked(item) for key, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list) else value


def sentences(before: Snapshot, after: Snapshot) -> list[str]:
    """The sentences of a review about access that is gained or lost between two snapshots."""
    answers = require_capability(after.platform, ReviewPlatform)
    then, now = answers.abilities((before, after))
    return [one.sentence for one in compare_abilities(then, now, answers)]
