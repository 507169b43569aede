# SPDX-License-Identifier: Apache-2.0
"""Users who came into a group of the stack's users after the stack was made."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from components.oci.client.live_members import MemberReader
from components.oci.client.live_policies import POLICY
from components.platform.client import Where
from components.platform.live import LiveQuestion, LiveSide, Reading
from components.platform.review import ReviewedResource, Snapshot

MADE = datetime(2026, 5, 1, tzinfo=UTC)
BEFORE, AFTER = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def members(group: str, since: datetime = AFTER, known: tuple[str, ...] = ()) -> LiveSide:
    """The live side, if ann is in the group `scientists` since then."""
    policy = {"statements": [f"Allow {group} to read buckets in tenancy", "Admit group a of tenancy b to read x"]}
    declared = Snapshot("demo", "oci", {}, (ReviewedResource(POLICY, "p", "urn::p", "", policy, id="p"),))
    reading = Reading(declared, lambda error: False)
    member = SimpleNamespace(id="m", user_id="ocid1.user.ann", group_id="ocid1.group.s", time_created=since)

    def lists(client: str, operation: str, tenancy: str, group_id: str = "") -> list[Any]:
        if operation == "list_groups":
            return [
                SimpleNamespace(name="Scientists", id="ocid1.group.s"),
                SimpleNamespace(name="x", id="ocid1.group.x"),
            ]
        return [member] if group_id == "ocid1.group.s" else []

    question = LiveQuestion(declared, Where({}), known)
    MemberReader(question, "tenancy", reading, lists, lambda ocid: SimpleNamespace(name="ann")).read(MADE)
    return reading.side({})


@pytest.mark.parametrize("group", ["group scientists", "group 'Default'/'scientists'", "group id ocid1.group.s"])
def test_a_new_member_is_said_and_an_old_one_is_not(group: str) -> None:
    (words,) = members(group).undeclared.values()
    assert words.startswith("user ann in the group ")
    assert words.endswith(", since 2026-06-01: no stack declares it")
    assert not members(group, BEFORE).undeclared
    assert not members(group, known=("user ann",)).undeclared


def test_groups_of_others_are_not_looked_at_and_those_of_identity_domains_are_named() -> None:
    assert not members("group x").undeclared
    assert not members("dynamic-group scientists").undeclared
    side = members("group 'Corp'/'scientists'")
    assert side.unread == ("members of the group Corp/scientists: identity domains are not read yet",)
