# SPDX-License-Identifier: Apache-2.0
"""A trial opens what production must keep closed. One changed word of its stack file makes it production."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from catalog.production import WORDS, is_production
from catalog.reason_tags import ALL_TCP, PROOF_OF_CONCEPT, TENANCY_WIDE, WILDCARD_POLICIES
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    unknown_because,
    verdicts_on_each,
)

# The tags that say why something is wide open.
TAGS = (ALL_TCP, TENANCY_WIDE, WILDCARD_POLICIES)
TYPES = ("oci:Core/securityList:SecurityList", "oci:Identity/policy:Policy", "aws:iam/policy:Policy")


def judge_trials(stack: JudgedStack) -> Iterator[StackVerdict]:
    names: Sequence[str] = stack.settings.get("production") or WORDS
    yield from verdicts_on_each(lambda one: judge_trial_resource(one, stack.environment, names), stack.of(*TYPES))


def judge_trial_resource(resource: JudgedResource, of_stack: str, names: Sequence[str]) -> PolicyVerdict:
    tag = next((tag for tag in TAGS if resource.tags.get(tag) == PROOF_OF_CONCEPT), None)
    if tag is None:
        return PASS
    reason = f"has the tag `{tag}: {PROOF_OF_CONCEPT}`"
    environment = of_stack or str(resource.tags.get("environment") or "")
    if not environment:
        return unknown_because(f"{reason}, and nothing says in which environment it is")
    if is_production(environment, names):
        return fail_because(f"{reason} in the environment `{environment}`")
    return PASS


def _stack_with_trial(tag: str, environment: Any, kind: int = 0, **settings: Any) -> JudgedStack:
    tags = {tag: PROOF_OF_CONCEPT, "environment": environment}
    properties = {"tags" if TYPES[kind].startswith("aws:") else "freeformTags": tags}
    return JudgedStack((JudgedResource(TYPES[kind], properties, "open"),), settings=settings)


RULE = StackRule(
    id="proof-of-concept-in-production",
    level="mandatory",
    asks="Nothing of a proof of concept is in production.",
    remedy="use `least-privilege` or `documented` as the mode of `trainyard:access`, and `least` or `documented` as"
    " that of `trainyard:network`",
    types=TYPES,
    judge=judge_trials,
    settings={
        "production": {
            "description": "Names, or words of names, of environments that are production.",
            "type": "array",
            "items": {"type": "string"},
            "default": list(WORDS),
        }
    },
    passes={
        "a trial in its own environment": _stack_with_trial("tenancy-wide", "poc", 1),
        "a name that only begins alike": _stack_with_trial("all-tcp", "product-search"),
        "production, without a trial": JudgedStack(
            (JudgedResource(TYPES[0], {"freeformTags": {"all-tcp": "horovod", "environment": "prod"}}, "rules"),)
        ),
        "another word for production": _stack_with_trial("all-tcp", "prod", production=["live"]),
    },
    fails={
        "every port": _stack_with_trial("all-tcp", "prod"),
        "the whole tenancy": _stack_with_trial("tenancy-wide", "eu-prod", 1),
        "every action of AWS": _stack_with_trial("wildcard-policies", "production", 2),
        "the second production": _stack_with_trial("all-tcp", "prod2"),
        "a word of the team's own": _stack_with_trial("all-tcp", "live", production=["live"]),
    },
    unknown={
        "no environment": _stack_with_trial("all-tcp", ""),
        "an environment decided elsewhere": _stack_with_trial("all-tcp", Unknown("freeformTags.environment")),
    },
)
