# SPDX-License-Identifier: Apache-2.0
"""Access to a whole tenancy must be deliberate."""

from typing import Any

from catalog.reason_tags import PROOF_OF_CONCEPT, TENANCY_WIDE
from components.oci.iam.parse import parse_statement
from components.oci.iam.statement import StatementError, Tenancy, VerbGrant
from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because, verdict_on_every

POLICY = "oci:Identity/policy:Policy"
# The other reason than a trial: the stack chose that scope.
CHOSEN = "chosen"


def judge_tenancy_access(resource: JudgedResource) -> PolicyVerdict:
    return verdict_on_every(
        lambda text: judge_tenancy_statement(str(text), resource.tags.get(TENANCY_WIDE)),
        resource.properties.get("statements") or (),
    )


def judge_tenancy_statement(text: str, meant: Any) -> PolicyVerdict:
    try:
        statement = parse_statement(text)
    except StatementError:
        return PASS  # statements-parse reports it
    if not isinstance(statement.location, Tenancy) or meant == PROOF_OF_CONCEPT:
        return PASS
    if isinstance(statement.grant, VerbGrant) and statement.grant.resource_type == "all-resources":
        return fail_because(f"`{text}` grants everything in the tenancy")
    return PASS if meant == CHOSEN else fail_because(f"`{text}` covers the whole tenancy")


def _tagged_policy(tag: str, *statements: Any) -> JudgedResource:
    return JudgedResource(POLICY, {"statements": list(statements), "freeformTags": {TENANCY_WIDE: tag} if tag else {}})


EVERYTHING = "Allow dynamic-group runs to manage all-resources in tenancy"
METRICS = "Allow group scientists to read metrics in tenancy"

RULE = PolicyRule(
    id="tenancy-wide",
    level="mandatory",
    asks="Statements cover the tenancy only in a proof of concept, or where the stack chose that scope.",
    remedy=f"grant it in the team's compartment; if you mean the tenancy, tag the policy `{TENANCY_WIDE}: {CHOSEN}`"
    f" (`{PROOF_OF_CONCEPT}` if everything should be open)",
    types=(POLICY,),
    judge=judge_tenancy_access,
    passes={
        "a compartment": _tagged_policy("", "Allow group scientists to read metrics in compartment training"),
        "everything, for a trial": _tagged_policy(PROOF_OF_CONCEPT, EVERYTHING),
        "the tenancy by choice": _tagged_policy(CHOSEN, METRICS),
    },
    fails={
        "the tenancy, without a tag": _tagged_policy("", METRICS),
        "everything, not for a trial": _tagged_policy(CHOSEN, EVERYTHING),
    },
    unknown={"names another resource": _tagged_policy("", Unknown("statements[0]"))},
)
