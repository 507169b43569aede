# SPDX-License-Identifier: Apache-2.0
"""Implements `ReviewPlatform` (components/platform/review.py) for AWS."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.machines import accelerators_of, price_of
from catalog.tables import table
from components.aws.iam.decide import fits_arn
from components.aws.review import snapshot_policies
from components.aws.review.abilities import OPAQUE, READ, WITHOUT_BOUNDARY, aws_abilities
from components.aws.review.conditions import OWN
from components.aws.review.vpc_network import read_aws_network
from components.aws.types import RESOURCE_TYPES
from components.platform.circumstances import OTHER, merged_circumstances, split_circumstances
from components.platform.review import Ability, Costs, Machines, Network, ReviewPlatform, Snapshot, Standing
from schemas.name_suggestions import and_list, count_noun

# The limit of named kinds. Further ones are only counted.
_MOST = 6
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")
_EVERYTHING = f"{OTHER}:{OTHER}"


def _verb_and_noun(name: str) -> tuple[str, str]:
    """Verb and object of an action: `PutObject` is write, objects. The pattern `Get…` is read, anything."""
    words = _WORD.findall(name.replace(OTHER, ""))
    if not words:
        return "do", "anything else"
    verb = table("aws_review")["verbs"].get(words[0], words[0].lower())
    if OTHER in name and len(words) == 1:
        return verb, "whatever there is"
    noun = " ".join(word if word.isupper() else word.lower() for word in words[1:])
    if not noun:
        return verb, "anything"
    if noun.endswith(("s", "tagging")):
        return verb, noun
    return verb, f"{noun[:-1]}ies" if noun.endswith("y") and not noun.endswith(("ay", "ey")) else f"{noun}s"


def _join_verbs(verbs: dict[tuple[str, str], set[str]]) -> list[str]:
    """Groups objects with the same verbs. The service is named if it is not clear."""
    order = list(dict.fromkeys(table("aws_review")["verbs"].values()))
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for (service, noun), found in sorted(verbs.items()):
        ordered = sorted(found, key=lambda verb: (order.index(verb) if verb in order else len(order), verb))
        alike[tuple(ordered)].append((service, noun))
    parts = []
    for names, things in alike.items():
        services = sorted({service for service, _ in things})
        nouns = list(dict.fromkeys(noun for _, noun in things))
        shown = and_list(tuple(nouns)) if len(nouns) <= _MOST else _limited_list(nouns)
        parts.append(f"{and_list(names)} {shown} ({', '.join(services)})")
    return parts


def _limited_list(shown: list[str]) -> str:
    return ", ".join(shown) if len(shown) <= _MOST else f"{', '.join(shown[:_MOST])} and {len(shown) - _MOST} more"


def _arn_words(arn: str) -> str:
    if arn == "*":
        return "everything"
    text = arn.replace(OWN, "<their own>").replace(OTHER, "*")
    for row in table("aws_review")["arn"]:
        if match := re.fullmatch(row["fits"], text):
            return str(row["words"]).format(*match.groups())
    return text


class AwsReview(ReviewPlatform):
    def network(self, side: Snapshot) -> Network:
        return read_aws_network(side)

    def abilities(self, sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
        return aws_abilities(sides)

    def statements(self, side: Snapshot) -> tuple[str, ...]:
        return snapshot_policies.identity_statements(side)

    def without_statements(self, side: Snapshot, texts: frozenset[str]) -> Snapshot:
        return snapshot_policies.without_identity_statements(side, texts)

    def operation_words(self, operations: frozenset[str]) -> str:
        if operations == {READ}:
            return "do what cannot be read here"
        if _EVERYTHING in operations:
            return "do everything"
        blocks = table("aws_review")["public_access_block"]
        services = {one.partition(":")[0] for one in operations if one.endswith(f":{OTHER}")}
        parts: list[str] = []
        verbs: dict[tuple[str, str], set[str]] = defaultdict(set)
        for operation in sorted(operations):
            service, colon, name = operation.partition(":")
            if operation.startswith(OPAQUE):
                parts.append(f"do whatever the policy {operation.removeprefix(OPAQUE)} allows")
            elif operation.startswith(WITHOUT_BOUNDARY):
                boundary = operation.removeprefix(WITHOUT_BOUNDARY).rpartition("/")[2]
                parts.append(f"act beyond the permissions boundary {boundary}")
            elif operation == READ or operation in blocks:
                parts.append(str(blocks.get(operation, "do what cannot be read here")))
            elif colon and service not in services:
                verb, noun = _verb_and_noun(name)
                verbs[service, noun].add(verb)
        parts += [f"do everything with {service}" for service in sorted(services)]
        parts += _join_verbs(verbs)
        if len(parts) > _MOST:
            return f"{'; '.join(parts[:_MOST])}; and {len(parts) - _MOST} more"
        return "; ".join(parts)

    def resource_words(self, resources: frozenset[str]) -> str:
        """Resources in words. If `everything` is among them, the others are left out."""
        circumstances: dict[str, set[str]] = defaultdict(set)
        for resource in resources:
            what, found = split_circumstances(resource)
            circumstances[what].add(found)
        if "" in circumstances.get("*", ()):
            circumstances = {"*": circumstances["*"]}
        shown = {f"{_arn_words(what)}{merged_circumstances(found)}" for what, found in circumstances.items() if what}
        return _limited_list(sorted(shown))

    def covers(self, resource: str, other: str) -> bool:
        """Whether one resource pattern includes another. With circumstances, the other must have the same ones."""
        (wide, found), (narrow, others) = split_circumstances(resource), split_circumstances(other)
        if not wide or not narrow or found not in ("", others):
            return False
        pattern = wide.replace(OWN, OTHER).replace(OTHER, "*")
        return pattern == "*" or (OTHER in wide and narrow != "*" and fits_arn(pattern, narrow))

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        """The costs of a stack's machines per hour, and further costs. All prices are the team's own: none is built in.
        Machines stay between runs, and stop when they are idle."""
        machines, disks = {}, 0
        for name, job in (side.plan.get("jobs") or {}).items():
            cluster = job["cluster"]
            shape, number = str(cluster["instanceType"]), len(cluster["nodes"])
            idle = int(cluster.get("stopWhenIdleMinutes") or 0)
            machines[name] = Machines(shape, number, accelerators_of(shape), *price_of(shape, prices), True, idle)
            disks += int(cluster.get("diskGb") or 0) * number
        standing = []
        for token, cost in ((token, row.standing) for token, row in RESOURCE_TYPES.items() if row.standing):
            inputs = cost.only.items()
            if number := sum(all(one.inputs.get(key) == value for key, value in inputs) for one in side.of(token)):
                price = price_of(cost.what, prices)
                standing.append(Standing(count_noun(number, cost.what), price.of(number), price.source))
        if disks:
            what = f"disks of the machines: {disks} GB, also while they are stopped"
            price = price_of("GB of disk", prices)
            standing.append(Standing(what, price.of(disks), price.source))
        return Costs(machines, tuple(standing))


REVIEW = AwsReview()
