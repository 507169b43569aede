# SPDX-License-Identifier: Apache-2.0
"""catalog/platforms.toml and the check that reads it know the same features; tables are shaped as readers expect."""

from __future__ import annotations

from catalog.tables import table
from schemas.checks.platform import FEATURES


def test_every_feature_a_platform_lacks_can_be_asked_for_and_the_other_way_round() -> None:
    lacking = {feature for row in table("platforms").values() for feature in row.get("lacks", {})}
    assert lacking == set(FEATURES)


def test_every_platform_says_whether_it_deploys_and_why_it_lacks_something() -> None:
    for row in table("platforms").values():
        assert isinstance(row["deploys"], bool)
        assert row["summary"]
        assert all(len(reason) > 20 for reason in row.get("lacks", {}).values())


def test_shapes_are_flexible_or_have_a_size() -> None:
    for name, row in table("shapes").items():
        assert row.get("flex", False) == name.endswith(".Flex")
        assert row.get("flex") or (row["vcpus"] > 0 and row["memory_gib"] > 0)
        assert ("accelerator" in row) == ("accelerators" in row)


def test_regions_have_keys_of_their_own() -> None:
    keys = table("regions")["keys"]
    assert len(set(keys.values())) == len(keys)
    assert keys["us-ashburn-1"] == "iad"
