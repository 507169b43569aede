# SPDX-License-Identifier: Apache-2.0
"""OCI checks statements only when it makes a policy. This rule finds earlier what OCI would refuse."""

from typing import Any

from iam.errors import StatementError
from iam.parse import parse
from policies.rule import JudgedResource, PolicyRule
from policies.verdicts import PASS, PolicyVerdict, Unknown, every, fail

POLICY = "oci:Identity/policy:Policy"


def judge(resource: JudgedResource) -> PolicyVerdict:
    return every(judge_statement, resource.properties.get("statements") or ())


def judge_statement(text: Any) -> PolicyVerdict:
    text = str(text)
    try:
        parse(text)
    except StatementError as problem:
        return fail(f"`{text}`: {problem}")
    return PASS


def _policy(*statements: Any) -> JudgedResource:
    return JudgedResource(POLICY, {"statements": list(statements)})


RULE = PolicyRule(
    id="statements-parse",
    level="mandatory",
    asks="Every policy statement is one that OCI understands.",
    remedy="write it as `Allow <who> to <verb> <what> in <where>`; put names with special characters in quotes",
    types=(POLICY,),
    judge=judge,
    passes={
        "a group": _policy("Allow group scientists to read metrics in compartment id ocid1.compartment.oc1..vision"),
        "narrowed": _policy(
            "Allow dynamic-group runs to manage objects in compartment training where target.bucket.name = 'vision'"
        ),
    },
    fails={
        "two verbs": _policy("Allow group scientists to use read metrics in tenancy"),
        "no quotes": _policy("Allow group scientists to read repos in tenancy where target.repo.name = vision/dt"),
        "beside an unknown one": _policy(Unknown("statements[0]"), "Allow everybody everything"),
    },
    unknown={"names another resource": _policy(Unknown("statements[0]"))},
)
