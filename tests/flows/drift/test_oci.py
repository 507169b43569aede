# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift` finds every change that is made at OCI without Pulumi, with Oracle's own clients."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

from tests.support.drift_changes_oci import Changes
from tests.support.drifting import StackUp, some, stack_up
from tests.support.local_team import Team

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackUp]:
    team = Team(tmp_path_factory.mktemp("drift"))
    try:
        team.trainyard("up", "local")
        yield stack_up("local", team.home, team.cloud)
    finally:
        team.end()


def test_every_change_outside_of_pulumi_is_found_and_an_unchanged_stack_has_no_drift(up: StackUp) -> None:
    up.stays_silent()
    for change in some(Changes(up).makers(), 6, 100):
        up.finds(change)
    up.is_silent()


def test_equivalent_rules_and_statements_are_no_drift(up: StackUp) -> None:
    changes = Changes(up)

    def twice(before: Any) -> dict[str, Any]:
        """Adds a second service gateway."""
        (rule,) = before.egress_security_rules
        again = copy(rule)
        again.description = "by hand"
        return {"egress_security_rules": [again, rule]}

    def reworded(texts: list[str]) -> list[str]:
        return [text.replace("Allow ", "ALLOW  ").replace(" to ", "  TO ") for text in reversed(texts)]

    undo = [changes._rules(twice), changes._statements(reworded)]
    try:
        up.is_silent()
    finally:
        for one in undo:
            one()
