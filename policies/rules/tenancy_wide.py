# SPDX-License-Identifier: Apache-2.0
"""Access to a whole tenancy is given on purpose or not at all."""

from typing import Any

from iam.errors import StatementError
from iam.parse import parse
from iam.statement import Tenancy, VerbGrant
from policies.rule import Resource, Rule
from policies.verdicts import PASS, Unknown, Verdict, every, fail

POLICY = "oci:Identity/policy:Policy"
# The freeform tag that says the tenancy is meant, and why: for a trial, or by the stack's own choice of scope.
TAG = "tenancy-wide"
PROOF_OF_CONCEPT, CHOSEN = "proof-of-concept", "chosen"


def judge(resource: Resource) -> Verdict:
    return every(
        lambda text: judge_statement(str(text), resource.tags.get(TAG)), resource.properties.get("statements") or ()
    )


def judge_statement(text: str, meant: Any) -> Verdict:
    try:
        statement = parse(text)
    except StatementError:
        return PASS  # another rule's word
    if not isinstance(statement.location, Tenancy) or meant == PROOF_OF_CONCEPT:
        return PASS
    if isinstance(statement.grant, VerbGrant) and statement.grant.resource_type == "all-resources":
        return fail(f"`{text}` hands over everything in the tenancy")
    return PASS if meant == CHOSEN else fail(f"`{text}` covers the whole tenancy")


def _policy(tag: str, *statements: Any) -> Resource:
    return Resource(POLICY, {"statements": list(statements), "freeformTags": {TAG: tag} if tag else {}})


EVERYTHING = "Allow dynamic-group runs to manage all-resources in tenancy"
METRICS = "Allow group scientists to read metrics in tenancy"

RULE = Rule(
    id="tenancy-wide",
    level="mandatory",
    asks="Statements cover the tenancy only in a proof of concept, or where the stack chose that scope.",
    remedy=f"grant it in the team's compartment; if the tenancy is meant, tag the policy `{TAG}: {CHOSEN}`"
    f" (`{PROOF_OF_CONCEPT}` where everything is to be open)",
    types=(POLICY,),
    judge=judge,
    passes={
        "a compartment": _policy("", "Allow group scientists to read metrics in compartment training"),
        "everything, for a trial": _policy(PROOF_OF_CONCEPT, EVERYTHING),
        "the tenancy by choice": _policy(CHOSEN, METRICS),
    },
    fails={
        "the tenancy, unsaid": _policy("", METRICS),
        "everything, not for a trial": _policy(CHOSEN, EVERYTHING),
    },
    unknown={"names another resource": _policy("", Unknown("statements[0]"))},
)
