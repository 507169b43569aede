# SPDX-License-Identifier: Apache-2.0
"""Asks the checks of a platform side by side, and judges a network by the rules of the plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from catalog.platforms import find_capability
from components.plan.model import INTERNET, SERVICES
from components.platform.calls import ProviderError, read_at_once
from components.platform.prerequisites import Answer, Check, CloudChecks, LiveNetwork, Problem, Remark
from schemas.name_suggestions import count_noun

# Calls are short, and clouds limit their rate.
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`unasked`: why the question could not be asked, with a remedy. Empty if it was."""

    title: str
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()
    unasked: str = ""
    remedy: str = ""


def ask_checks(checks: Sequence[Check]) -> list[CheckResult]:
    return read_at_once(_ask_check, checks, _AT_ONCE)


def ask_cloud(checks: CloudChecks) -> list[CheckResult]:
    """Where the first check fails, the others would only repeat that."""
    first = _ask_check(checks.first)
    if first.problems or first.unasked:
        return [first]
    return [first, *ask_checks(checks.others)]


def _ask_check(check: Check) -> CheckResult:
    answers, unasked, remedy = list[Answer](), "", ""
    try:
        for answer in check.ask():
            answers.append(answer)
    except ProviderError as error:
        unasked, remedy = error.cause, error.remedy
    problems = [answer for answer in answers if isinstance(answer, Problem)]
    for answer in answers:
        if isinstance(answer, LiveNetwork):
            problems += judge_live_network(answer)
    remarks = tuple(answer.words for answer in answers if isinstance(answer, Remark))
    return CheckResult(check.title, tuple(dict.fromkeys(problems)), remarks, unasked, remedy)


def judge_live_network(live: LiveNetwork) -> Iterator[Problem]:
    """Connections that the plan needs and no rule allows, those of the same rule together."""
    # Imported here: most checks judge no network.
    from components.platform.review import ReviewPlatform
    from trainyard.review.reach import port_words
    from trainyard.review.rendezvous import BlockedConnection, find_hanging_connections

    review = find_capability(live.snapshot.platform, ReviewPlatform)
    if not isinstance(review, ReviewPlatform):
        return
    network = review.network(live.snapshot)
    peers = " or ".join(network.addresses)
    by_rule: dict[tuple[str, str, str], list[BlockedConnection]] = {}
    for blocked in find_hanging_connections(live.snapshot, network):
        direction, target = blocked.missing.partition(" at ")[0], blocked.pair.rpartition(" -> ")[2]
        # One peer of each row is enough.
        outside = {SERVICES: " and ".join(" or ".join(row) for row in network.services), INTERNET: "anywhere"}
        towards = f"to {outside.get(target, peers)}" if direction == "egress" else f"from {peers}"
        by_rule.setdefault((direction, blocked.protocol.upper(), towards), []).append(blocked)
    for (direction, protocol, towards), connections in by_rule.items():
        ports = ", ".join(port_words(ports) for ports in sorted({blocked.ports for blocked in connections}))
        pairs = list(dict.fromkeys(blocked.pair for blocked in connections))
        others = f" and {count_noun(len(pairs) - 1, 'other')}" if len(pairs) > 1 else ""
        yield Problem(
            f"no rule opens {protocol} {ports} ({direction}), so {pairs[0]}{others} would hang",
            f"Add to {live.place}: {direction} {protocol} {ports} {towards}. `trainyard plan` prints every rule with "
            "its reason",
        )
