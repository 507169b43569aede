# SPDX-License-Identifier: Apache-2.0
"""The rate of access decisions, against the least that a decision needs: a lookup in a dict and one in a set."""

import time
from collections.abc import Callable

from bench.harness.rows import Row
from components.oci.iam.explain import explain_refusal
from components.oci.iam.judge import (
    AttachedPolicy,
    Compartments,
    Membership,
    Principal,
    Target,
    compile_policies,
    judge_request,
)
from components.oci.iam.parse import parse_statement
from components.oci.iam.printing import to_text

ROOT = "ocid1.tenancy.oc1..root"
TEAMS = 100
# The permissions of a typical stack, as Oracle's documentation asks for them.
_USERS = (
    "manage repos",
    "manage data-science-family",
    "use virtual-network-family",
    "manage log-groups",
    "read metrics",
)
_RUNS = ("read repos", "use data-science-family", "use log-content")


def _compartment(team: int) -> str:
    return f"ocid1.compartment.oc1..c{team}"


def _statements(team: int) -> list[str]:
    place = f"in compartment id {_compartment(team)}"
    rows = [f"Allow group people-{team} to {what} {place}" for what in _USERS]
    rows += [f"Allow dynamic-group runs-{team} to {what} {place}" for what in _RUNS]
    bucket = f"{place} where all {{target.bucket.name = 'bucket-{team}', request.permission != 'OBJECT_DELETE'}}"
    return [*rows, *(f"Allow {who} to manage objects {bucket}" for who in (f"group people-{team}", "any-user"))]


def _rate(call: Callable[[], object], seconds: float = 0.5) -> float:
    """Calls a second, the best of three runs."""
    best = 0.0
    for _ in range(3):
        calls, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds / 3:
            for _ in range(100):
                call()
            calls += 100
        best = max(best, calls / (time.perf_counter() - start))
    return best


def rows() -> list[Row]:
    tree = Compartments(ROOT, {_compartment(team): ROOT for team in range(TEAMS)})
    texts = [text for team in range(TEAMS) for text in _statements(team)]
    statements = [parse_statement(text) for text in texts]
    policies = [AttachedPolicy("p", ROOT, tuple(statements))]
    in_force = compile_policies(policies, tree)
    team = TEAMS // 2
    alice = Principal("user", "ocid1.user.oc1..a", groups=(Membership("ocid1.group.oc1..g", f"people-{team}"),))
    here = Target(_compartment(team), {"target.bucket.name": f"bucket-{team}"})
    elsewhere = Target(_compartment(0), {"target.bucket.name": "bucket-0"})
    three = ("DATA_SCIENCE_JOB_RUN_CREATE", "DATA_SCIENCE_JOB_READ", "DATA_SCIENCE_PROJECT_READ")
    table, members = {("group", "default", f"people-{team}"): frozenset(three)}, frozenset(three)
    key = ("group", "default", f"people-{team}")

    assert judge_request(in_force, alice, three, here).allowed
    assert judge_request(in_force, alice, ("OBJECT_READ",), here).allowed
    assert not judge_request(in_force, alice, ("BUCKET_READ",), elsewhere).allowed
    floor = _rate(lambda: table.get(key) and three[0] in members)
    calls: dict[str, Callable[[], object]] = {
        "allowed, three permissions": lambda: judge_request(in_force, alice, three, here),
        "allowed, by a condition": lambda: judge_request(in_force, alice, ("OBJECT_READ",), here),
        "refused": lambda: judge_request(in_force, alice, ("BUCKET_READ",), elsewhere),
        "refused and explained": lambda: explain_refusal(in_force, alice, ("BUCKET_READ",), elsewhere).text(),
        "parse a statement": lambda: parse_statement(texts[-1]),
        "print a statement": lambda: to_text(statements[-1]),
    }
    return [_row(name, _rate(call), floor) for name, call in calls.items()]


def _row(name: str, rate: float, floor: float) -> Row:
    return Row(name, 1e6 / rate, "us", "two look-ups", 1e6 / floor, floor / rate)
