# SPDX-License-Identifier: Apache-2.0
"""Members of a dynamic group get its permissions. Without a compartment, its rule matches the runs of every team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.reason_tags import PROOF_OF_CONCEPT, TENANCY_WIDE
from components.oci.iam.matching import parse_rule
from components.oci.iam.statement import StatementError
from policies.documents import allowed_values
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    is_tagged,
    unknown_because,
    verdicts_on_each,
)

GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
DOMAIN_GROUP = "oci:Identity/domainsDynamicResourceGroup:DomainsDynamicResourceGroup"
POLICY = "oci:Identity/policy:Policy"
# The compartment of a member, by the two names that OCI has for it.
COMPARTMENTS = ("resource.compartment.id", "instance.compartment.id")


def judge_dynamic_groups(stack: JudgedStack) -> Iterator[StackVerdict]:
    if any(is_tagged(policy, TENANCY_WIDE, PROOF_OF_CONCEPT) for policy in stack.of(POLICY)):
        return
    here = Compartments.of(stack)
    yield from verdicts_on_each(lambda group: judge_group_scope(group, here), stack.of(GROUP, DOMAIN_GROUP))


def judge_group_scope(group: JudgedResource, here: Compartments) -> PolicyVerdict:
    text = str(group.properties.get("matchingRule"))
    try:
        compartments = allowed_values(parse_rule(text), *COMPARTMENTS)
    except StatementError as problem:
        return fail_because(f"`{text}`: {problem}")
    if compartments is None:
        return fail_because(f"`{text}` matches in every compartment")
    others = sorted(compartment for compartment in compartments if compartment not in here.known)
    if others and here.has_unknown:
        return unknown_because(f"whether {', '.join(others)} is a compartment of this stack is not known yet")
    return fail_because(f"`{text}` matches in {', '.join(others)}, where nothing of this stack is") if others else PASS


@dataclass(frozen=True, slots=True)
class Compartments:
    """Where the stack's resources are. Groups themselves are always in the tenancy."""

    known: frozenset[str]
    has_unknown: bool

    @classmethod
    def of(cls, stack: JudgedStack) -> Compartments:
        named = [
            resource.properties.get("compartmentId")
            for resource in stack.resources
            if resource.type.startswith("oci:") and resource.type != GROUP
        ]
        known = frozenset(compartment for compartment in named if isinstance(compartment, str))
        return cls(known, any(isinstance(compartment, Unknown) for compartment in named))


TRAINING = "ocid1.compartment.oc1..training"
JOB = JudgedResource("oci:DataScience/job:Job", {"compartmentId": TRAINING}, "resnet")
MEMBERS = "resource.type = 'datasciencejobrun'"


def _stack_with_group(rule: object, *others: JudgedResource, kind: str = GROUP) -> JudgedStack:
    return JudgedStack((*others, JudgedResource(kind, {"matchingRule": rule}, "runs")))


TRIAL_POLICY = JudgedResource(POLICY, {"statements": [], "freeformTags": {TENANCY_WIDE: PROOF_OF_CONCEPT}}, "access")


RULE = StackRule(
    id="dynamic-group-scope",
    level="mandatory",
    asks="A dynamic group matches only what is in the stack's own compartment.",
    remedy="add `resource.compartment.id = '…'` to the rule, in `all {…}`; in a trial, tag the stack's policy"
    f" `{TENANCY_WIDE}: {PROOF_OF_CONCEPT}`",
    types=(GROUP, DOMAIN_GROUP),
    judge=judge_dynamic_groups,
    passes={
        "its compartment": _stack_with_group(f"all {{{MEMBERS}, resource.compartment.id = '{TRAINING}'}}", JOB),
        "its compartment, in a domain": _stack_with_group(
            f"resource.compartment.id = '{TRAINING}'", JOB, kind=DOMAIN_GROUP
        ),
        "instances of its compartment": _stack_with_group(f"instance.compartment.id = '{TRAINING}'", JOB),
        "a trial": _stack_with_group(MEMBERS, JOB, TRIAL_POLICY),
        "no group": JudgedStack((JOB,)),
    },
    fails={
        "every compartment": _stack_with_group(MEMBERS, JOB),
        "its compartment, or any": _stack_with_group(f"any {{{MEMBERS}, resource.compartment.id = '{TRAINING}'}}", JOB),
        "another compartment": _stack_with_group("resource.compartment.id = 'ocid1.compartment.oc1..audit'", JOB),
        "all but one": _stack_with_group(f"resource.compartment.id != '{TRAINING}'", JOB),
        "no rule that OCI reads": _stack_with_group("everything", JOB),
        "every compartment, in a domain": _stack_with_group(MEMBERS, JOB, kind=DOMAIN_GROUP),
    },
    unknown={
        "a rule decided elsewhere": _stack_with_group(Unknown("matchingRule"), JOB),
        "a compartment that is made later": _stack_with_group(
            f"resource.compartment.id = '{TRAINING}'",
            JudgedResource(JOB.type, {"compartmentId": Unknown("compartmentId")}, "resnet"),
        ),
    },
)
