# SPDX-License-Identifier: Apache-2.0
"""Members of a dynamic group get its permissions. Without a compartment, its rule matches the runs of every team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
    each,
    fail,
    is_tagged,
    unknown,
)

GROUP = "oci:Identity/dynamicGroup:DynamicGroup"
DOMAIN_GROUP = "oci:Identity/domainsDynamicResourceGroup:DomainsDynamicResourceGroup"
POLICY = "oci:Identity/policy:Policy"
# The compartment of a member, by the two names that OCI has for it.
COMPARTMENTS = ("resource.compartment.id", "instance.compartment.id")
PROOF_OF_CONCEPT = "proof-of-concept"
TRIAL_TAG = "tenancy-wide"


def judge(stack: JudgedStack) -> Iterator[StackVerdict]:
    if any(is_tagged(policy, TRIAL_TAG, PROOF_OF_CONCEPT) for policy in stack.of(POLICY)):
        return
    here = Compartments.of(stack)
    yield from each(lambda group: judge_group(group, here), stack.of(GROUP, DOMAIN_GROUP))


def judge_group(group: JudgedResource, here: Compartments) -> PolicyVerdict:
    text = str(group.properties.get("matchingRule"))
    try:
        compartments = allowed_values(parse_rule(text), *COMPARTMENTS)
    except StatementError as problem:
        return fail(f"`{text}`: {problem}")
    if compartments is None:
        return fail(f"`{text}` matches in every compartment")
    others = sorted(one for one in compartments if one not in here.known)
    if others and here.has_unknown:
        return unknown(f"whether {', '.join(others)} is a compartment of this stack is not known yet")
    return fail(f"`{text}` matches in {', '.join(others)}, where nothing of this stack is") if others else PASS


@dataclass(frozen=True, slots=True)
class Compartments:
    """Where the stack's resources are. Groups themselves are always in the tenancy."""

    known: frozenset[str]
    has_unknown: bool

    @classmethod
    def of(cls, stack: JudgedStack) -> Compartments:
        named = [
            one.properties.get("compartmentId")
            for one in stack.resources
            if one.type.startswith("oci:") and one.type != GROUP
        ]
        known = frozenset(compartment for compartment in named if isinstance(compartment, str))
        return cls(known, any(isinstance(compartment, Unknown) for compartment in named))


TRAINING = "ocid1.compartment.oc1..training"
JOB = JudgedResource("oci:DataScience/job:Job", {"compartmentId": TRAINING}, "resnet")
MEMBERS = "resource.type = 'datasciencejobrun'"


def _stack(rule: object, *others: JudgedResource, kind: str = GROUP) -> JudgedStack:
    return JudgedStack((*others, JudgedResource(kind, {"matchingRule": rule}, "runs")))


def _trial() -> JudgedResource:
    return JudgedResource(POLICY, {"statements": [], "freeformTags": {TRIAL_TAG: PROOF_OF_CONCEPT}}, "access")


RULE = StackRule(
    id="dynamic-group-scope",
    level="mandatory",
    asks="A dynamic group matches only what is in the stack's own compartment.",
    remedy="add `resource.compartment.id = '…'` to the rule, in `all {…}`; in a trial, tag the stack's policy"
    f" `{TRIAL_TAG}: {PROOF_OF_CONCEPT}`",
    types=(GROUP, DOMAIN_GROUP),
    judge=judge,
    passes={
        "its compartment": _stack(f"all {{{MEMBERS}, resource.compartment.id = '{TRAINING}'}}", JOB),
        "its compartment, in a domain": _stack(f"resource.compartment.id = '{TRAINING}'", JOB, kind=DOMAIN_GROUP),
        "instances of its compartment": _stack(f"instance.compartment.id = '{TRAINING}'", JOB),
        "a trial": _stack(MEMBERS, JOB, _trial()),
        "no group": JudgedStack((JOB,)),
    },
    fails={
        "every compartment": _stack(MEMBERS, JOB),
        "its compartment, or any": _stack(f"any {{{MEMBERS}, resource.compartment.id = '{TRAINING}'}}", JOB),
        "another compartment": _stack("resource.compartment.id = 'ocid1.compartment.oc1..audit'", JOB),
        "all but one": _stack(f"resource.compartment.id != '{TRAINING}'", JOB),
        "no rule that OCI reads": _stack("everything", JOB),
        "every compartment, in a domain": _stack(MEMBERS, JOB, kind=DOMAIN_GROUP),
    },
    unknown={
        "a rule decided elsewhere": _stack(Unknown("matchingRule"), JOB),
        "a compartment that is made later": _stack(
            f"resource.compartment.id = '{TRAINING}'",
            JudgedResource(JOB.type, {"compartmentId": Unknown("compartmentId")}, "resnet"),
        ),
    },
)
