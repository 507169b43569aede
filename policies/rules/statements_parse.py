# SPDX-License-Identifier: Apache-2.0
"""The cloud checks statements only when it creates a policy. This rule finds invalid ones earlier."""

import json
from collections.abc import Mapping
from typing import Any

from components.oci.iam.parse import parse_statement
from components.oci.iam.statement import StatementError
from components.values.resource_types import TypesWith, find_resource_type
from policies.documents import DocumentError, statements_in_document
from policies.rule import (
    PASS,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    by_type,
    fail_because,
    verdict_on_every,
)

POLICY, ROLE = "oci:Identity/policy:Policy", "aws:iam/role:Role"
DOCUMENTS = TypesWith(lambda row: row.document or (row.own_policy.policy if row.own_policy else ""))
# What every statement has.
PARTS = (("Effect",), ("Action", "NotAction"), ("Resource", "NotResource", "Principal", "NotPrincipal"))


def judge_policy_syntax(resource: JudgedResource) -> PolicyVerdict:
    return verdict_on_every(judge_statement_syntax, resource.properties.get("statements") or ())


def judge_document_syntax(resource: JudgedResource) -> PolicyVerdict:
    document = resource.properties.get(DOCUMENTS[resource.type])
    try:
        statements = statements_in_document(document)
    except DocumentError as problem:
        return fail_because(f"its document: {problem}")
    text = document if isinstance(document, str) else json.dumps(document, default=str)
    row = find_resource_type(resource.type)
    if row and len("".join(text.split())) > row.most_characters:
        return fail_because(f"its document has more than {row.most_characters} characters")
    return verdict_on_every(judge_parts, statements)


def judge_parts(statement: Mapping[str, Any]) -> PolicyVerdict:
    missing = [" or ".join(keys) for keys in PARTS if not any(key in statement for key in keys)]
    if missing:
        return fail_because(f"a statement has no {', '.join(missing)}")
    return PASS if statement["Effect"] in ("Allow", "Deny") else fail_because("an Effect is neither Allow nor Deny")


def judge_statement_syntax(text: Any) -> PolicyVerdict:
    text = str(text)
    try:
        parse_statement(text)
    except StatementError as problem:
        return fail_because(f"`{text}`: {problem}")
    return PASS


def _policy_with_statements(*statements: Any) -> JudgedResource:
    return JudgedResource(POLICY, {"statements": list(statements)})


def _document_of_type(text: Any, kind: str = "aws:iam/policy:Policy") -> JudgedResource:
    return JudgedResource(kind, {"assumeRolePolicy" if kind == ROLE else "policy": text})


ROWS = TypesWith(lambda row: judge_document_syntax if row.token in DOCUMENTS else None, {POLICY: judge_policy_syntax})
READS = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::vision-dev-training/*"}

RULE = PolicyRule(
    id="statements-parse",
    level="mandatory",
    asks="Every policy statement is one that its cloud understands.",
    remedy="on OCI write `Allow <who> to <verb> <what> in <where>`, with names of special characters in quotes; on AWS"
    " write JSON whose statements have Effect, Action and Resource, and split a document that is too long",
    types=ROWS,
    judge=by_type(ROWS),
    passes={
        "a document": _document_of_type(json.dumps({"Statement": READS})),
        "a group": _policy_with_statements(
            "Allow group scientists to read metrics in compartment id ocid1.compartment.oc1..vision"
        ),
        "narrowed": _policy_with_statements(
            "Allow dynamic-group runs to manage objects in compartment training where target.bucket.name = 'vision'"
        ),
    },
    fails={
        "not JSON": _document_of_type("Allow group scientists to read metrics in tenancy"),
        "no action": _document_of_type({"Statement": [{"Effect": "Allow", "Resource": "*"}]}),
        "neither allowed nor denied": _document_of_type({"Statement": {**READS, "Effect": "allow"}}),
        "longer than AWS takes": _document_of_type(json.dumps({"Statement": [READS] * 80})),
        "nobody trusted": _document_of_type('{"Version": "2012-10-17"}', ROLE),
        "two verbs": _policy_with_statements("Allow group scientists to use read metrics in tenancy"),
        "no quotes": _policy_with_statements(
            "Allow group scientists to read repos in tenancy where target.repo.name = vision/dt"
        ),
        "beside an unknown one": _policy_with_statements(Unknown("statements[0]"), "Allow everybody everything"),
    },
    unknown={
        "names another resource": _policy_with_statements(Unknown("statements[0]")),
        "a document of another resource": _document_of_type(Unknown("policy")),
    },
)
