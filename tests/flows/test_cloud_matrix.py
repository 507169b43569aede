# SPDX-License-Identifier: Apache-2.0
"""For every call, and every field or parameter with a compartment or an id: the value of another team is refused.

The caller has every right in one team's compartment and none in the other's. At one place at a time stands something of
the other team; everything else is the caller's own. The answer must be the one for what does not exist.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from localcloud.admin import add_fault
from localcloud.control import Cloud
from tests.support.access_matrix import ELSEWHERE, OPAQUE, Question, Spot, of_kind, question, spots
from tests.support.counts import wanted
from tests.support.two_teams import OURS, THEIRS, Answer, Caller, Team, team, with_addresses
from tests.support.waiting import eventually

SPOTS = spots()
# With the caller's own compartment in no other place, and in all places that the call does not read; in full, in each
# place alone.
VARIATIONS = ((), ELSEWHERE, *((place,) for place in ELSEWHERE[: wanted(sample=0, full=len(ELSEWHERE))]))
RELATED = "RelatedResourceNotAuthorizedOrNotFound"
REFUSED = frozenset({"NotAuthorizedOrNotFound", RELATED})
# A handler's error may name the missing resource.
BARE = '"message":"Authorization failed or requested resource not found"'
# Operations without a documented permission are for administrators only.
ADMINISTRATORS_ONLY = frozenset({"GetResourceAvailability", "ListLimitDefinitions", "ListLimitValues"})
# Kinds without another team's resource: nobody here has rights on resources of the tenancy itself, and a compartment
# belongs to its parent.
IN_THE_TENANCY = frozenset({"tenancy", "dynamic-group"})
# A list of work requests shows each caller only its own.
SHOWS_NOTHING = frozenset({"ListWorkRequests"})
NOT_SERVED = "the local cloud does not support"
_STATEMENTS = (
    f"allow group scientists to manage all-resources in compartment {OURS}",
    f"allow group scientists to manage users in tenancy where target.user.name = '{OURS}'",
    f"allow group scientists to manage groups in tenancy where target.group.name = '{OURS}'",
)


@dataclass(frozen=True)
class Teams:
    """The caller's own team, the other team, and the caller, who is no administrator."""

    ours: Team
    theirs: Team
    caller: Caller

    def ask(self, asked: Question) -> Answer:
        return self.caller.ask(asked.method, asked.target, asked.body, asked.headers)


@pytest.fixture(scope="module")
def teams(shared_cloud: Cloud) -> Iterator[Teams]:
    admin = Caller(shared_cloud)
    place = {"compartmentId": shared_cloud.tenancy, "description": "teams"}
    service = ["allow service datascience to use virtual-network-family in tenancy"]
    admin.made("/20160918/policies", {**place, "name": "service", "statements": service})
    ours, theirs = (team(admin, mark, number) for number, mark in enumerate((OURS, THEIRS)))
    admin.made("/20160918/policies", {**place, "name": "tenant", "statements": list(_STATEMENTS)})
    caller = Caller(shared_cloud, "user")
    try:
        for one in (ours, theirs):  # Changes that the cloud makes by itself have ended.
            eventually(partial(_state_of_run, admin, one), "IN_PROGRESS".__eq__)
        yield Teams(with_addresses(admin, ours), with_addresses(admin, theirs), caller)
    finally:
        admin.close()
        caller.close()


def _state_of_run(admin: Caller, of: Team) -> str:
    return str(admin.made(f"/20190101/jobRuns/{of['job-run']}", None, "GET")["lifecycleState"])


def test_every_field_that_looks_like_a_reference_is_in_the_table() -> None:
    unknown = sorted({spot.name for spot in SPOTS if not spot.kinds and spot.name not in OPAQUE})
    assert not unknown, f"catalog/references.toml has neither a kind nor a reason for {', '.join(unknown)}"


def _others(teams: Teams, spot: Spot) -> list[Any]:
    """The other team's resource of each possible kind. For a compartment, also the tenancy."""
    found = [of_kind(teams.theirs, kind) for kind in spot.kinds]
    return [*found, teams.theirs["tenancy"]] if spot.kinds == ["compartment"] and spot.source != "path" else found


def _absent(value: Any) -> Any:
    """A value of the same form that names no resource."""
    if isinstance(value, dict):
        return {**value, "compartmentId": _absent(value["compartmentId"])}
    return re.sub(r"(aaaaaaaa)\w{8}", r"\1nothing2", value) if "aaaaaaaa" in value else value.replace(THEIRS, "nobodys")


def _without(text: str, sent: tuple[str, ...]) -> str:
    for value in sorted(sent, key=len, reverse=True):
        text = text.replace(value, "")
    return text


def _tells(teams: Teams, answer: Answer, asked: Question) -> bool:
    """Whether a response has a value of the other team that was not in the request."""
    text = _without(answer.text, asked.sent)
    return THEIRS in text or any(value in text for kind, value in teams.theirs.things.items() if kind != "tenancy")


def _wrong(teams: Teams, spot: Spot, value: Any, elsewhere: Sequence[str]) -> str:
    """The problem with the response to one request. Empty if it is refused correctly."""
    asked = question(spot.operation, teams.ours, spot, value, elsewhere)
    answer = teams.ask(asked)
    hidden = f" and ours in the {', '.join(elsewhere)}" if elsewhere else ""
    told = f"{spot} with {value!r}{hidden}: {answer.status} {answer.text[:300]}"
    if _tells(teams, answer, asked):
        return f"tells of the other team: {told}"
    if spot.only_narrows or spot.operation.name in SHOWS_NOTHING:
        return "" if answer.status in (200, 404) else f"not narrowed: {told}"
    if answer.code not in REFUSED and not (answer.status == 404 and spot.operation.method == "HEAD"):
        return "" if NOT_SERVED in answer.text else f"not refused: {told}"
    if elsewhere or value == teams.theirs["tenancy"]:
        return ""
    absent = question(spot.operation, teams.ours, spot, _absent(value))
    other = teams.ask(absent)
    alike = (
        replace(answer, text=_without(answer.text, asked.sent)),
        replace(other, text=_without(other.text, absent.sent)),
    )
    return "" if alike[0] == alike[1] else f"told apart from what is not there: {told}; {other.status} {other.text}"


def _state(cloud: Cloud) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{cloud.home / 'state.sqlite3'}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT id, compartment, live, etag FROM resources ORDER BY id").fetchall()
        objects = connection.execute("SELECT bucket, name, etag FROM objects ORDER BY bucket, name").fetchall()
        return [*rows, *objects, *connection.execute("SELECT count(*) FROM metrics WHERE namespace = 'two_teams'")]
    finally:
        connection.close()


def test_another_teams_resource_is_refused_in_every_field(teams: Teams) -> None:
    before = _state(teams.caller.cloud)
    wrong = [
        found
        for spot in SPOTS
        for value in _others(teams, spot)
        for elsewhere in VARIATIONS
        if (found := _wrong(teams, spot, value, elsewhere))
    ]
    assert not wrong, f"{len(wrong)} of {len(SPOTS)}:\n" + "\n".join(wrong)
    assert _state(teams.caller.cloud) == before


def test_the_same_calls_succeed_with_the_teams_own_resources(teams: Teams) -> None:
    """The same calls succeed with the caller's own values, so each refusal is because of the one place. Deletions come
    last, resources that are in others first."""
    add_fault(teams.caller.cloud, "no-capacity", shape="*")  # no run need be started for it
    judged = [spot for spot in SPOTS if spot.kinds and not spot.only_narrows and _may_be_ours(spot)]
    changing = [spot for spot in judged if spot.operation.method != "DELETE"]
    removing = {spot.operation: spot for spot in judged if spot.operation.method == "DELETE"}
    last = sorted(removing.values(), key=lambda spot: -len(spot.operation.path))
    refused = []
    for spot in (*changing, *last):
        for kind in spot.kinds if spot.name != "networkEntityId" else ("nat-gateway",):
            answer = teams.ask(question(spot.operation, teams.ours, spot, of_kind(teams.ours, kind)))
            if answer.code == RELATED or BARE in answer.text or (spot.operation.method, answer.status) == ("HEAD", 404):
                refused.append(f"{spot}: {answer.status} {answer.text}")
    assert not refused, "\n".join(refused)


def _may_be_ours(spot: Spot) -> bool:
    """Whether a caller without rights on the tenancy may make the call at all."""
    row = spot.operation
    kinds = {kind for other in SPOTS if other.operation == row and other.source == "path" for kind in other.kinds}
    return (
        row.name not in ADMINISTRATORS_ONLY and row.service != "limits" and not kinds & {*IN_THE_TENANCY, "compartment"}
    )
