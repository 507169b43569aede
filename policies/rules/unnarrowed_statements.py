# SPDX-License-Identifier: Apache-2.0
"""A statement that names no bucket or repository covers those of every team in the compartment or account."""

from collections.abc import Mapping
from typing import Any

from catalog.reason_tags import PROOF_OF_CONCEPT, TENANCY_WIDE, WILDCARD_POLICIES
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import permissions_of_grant, type_of
from components.oci.iam.statement import StatementError
from components.values.resource_types import TypesWith
from policies.aws_grants import kinds_without_name
from policies.documents import IDENTITY_TYPES, allowed_values, as_list, identity_statements
from policies.rule import (
    PASS,
    JudgedResource,
    PolicyRule,
    PolicyVerdict,
    Unknown,
    by_type,
    fail_because,
    is_tagged,
    verdict_on_every,
)

POLICY = "oci:Identity/policy:Policy"
# Resource types of OCI that keep a team's data -> what a statement is narrowed by.
NARROWED_BY = {"objects": "target.bucket.name", "buckets": "target.bucket.name", "repos": "target.repo.name"}


def judge_unnarrowed_policy(resource: JudgedResource) -> PolicyVerdict:
    return _outside_trials(
        resource,
        TENANCY_WIDE,
        verdict_on_every(judge_unnarrowed_statement, resource.properties.get("statements") or ()),
    )


def judge_unnarrowed_document(resource: JudgedResource) -> PolicyVerdict:
    statements = identity_statements(resource.properties, resource.type)
    return _outside_trials(resource, WILDCARD_POLICIES, verdict_on_every(judge_statement_of_aws, statements))


def judge_unnarrowed_statement(text: Any) -> PolicyVerdict:
    try:
        statement = parse_statement(str(text))
    except StatementError:
        return PASS  # statements-parse reports it
    granted = {type_of(permission) for permission in permissions_of_grant(statement.grant)}
    missing = {
        variable
        for kind, variable in NARROWED_BY.items()
        if kind in granted and allowed_values(statement.condition, variable) is None
    }
    return fail_because(f"`{text}` has no {' and no '.join(sorted(missing))}") if missing else PASS


def judge_statement_of_aws(statement: Mapping[str, Any]) -> PolicyVerdict:
    if statement.get("Effect") != "Allow":
        return PASS
    # Statements on `*` are what wildcard-policies reports.
    kinds = [kind for pattern in as_list(statement.get("Resource")) for kind in kinds_without_name(str(pattern))]
    actions = ", ".join(map(str, as_list(statement.get("Action"))))
    return fail_because(f"grants {actions} on every {' and '.join(dict.fromkeys(kinds))}") if kinds else PASS


def _outside_trials(resource: JudgedResource, tag: str, verdict: PolicyVerdict) -> PolicyVerdict:
    return PASS if verdict.outcome == "fail" and is_tagged(resource, tag, PROOF_OF_CONCEPT) else verdict


def _policy_or_trial(*statements: Any, trial: bool = False) -> JudgedResource:
    tags = {TENANCY_WIDE: PROOF_OF_CONCEPT} if trial else {}
    return JudgedResource(POLICY, {"statements": list(statements), "freeformTags": tags})


def _document_allowing(action: str, resource: Any) -> JudgedResource:
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    return JudgedResource("aws:iam/policy:Policy", {"policy": {"Statement": [statement]}})


ROWS = TypesWith(
    lambda row: judge_unnarrowed_document if row.token in IDENTITY_TYPES else None, {POLICY: judge_unnarrowed_policy}
)
OBJECTS = "Allow dynamic-group runs to manage objects in compartment training"
IMAGES = "Allow dynamic-group runs to read repos in compartment training"

RULE = PolicyRule(
    id="unnarrowed-statements",
    level="mandatory",
    asks="Statements on objects, images, roles and secrets name their bucket, repository, role and secret.",
    remedy="add `where target.bucket.name = '…'` or `where target.repo.name = '…'`; on AWS name them in Resource;"
    f" in a trial, tag the policy `{TENANCY_WIDE}: {PROOF_OF_CONCEPT}`"
    f" (`{WILDCARD_POLICIES}: {PROOF_OF_CONCEPT}` on AWS)",
    types=ROWS,
    judge=by_type(ROWS),
    passes={
        "its bucket": _policy_or_trial(f"{OBJECTS} where target.bucket.name = 'vision'"),
        "its bucket, and more": _policy_or_trial(
            f"{OBJECTS} where all {{target.bucket.name = 'a', request.region = 'iad'}}"
        ),
        "its repository": _policy_or_trial(f"{IMAGES} where target.repo.name = 'vision/dt'"),
        "what has no bucket": _policy_or_trial("Allow group scientists to read metrics in compartment training"),
        "for a trial": _policy_or_trial("Allow dynamic-group runs to manage all-resources in tenancy", trial=True),
        "a bucket of AWS": _document_allowing("s3:GetObject", "arn:aws:s3:::vision-dev-training/*"),
        "a repository of AWS": _document_allowing(
            "ecr:BatchGetImage", "arn:aws:ecr:us-east-1:123456789012:repository/vision"
        ),
    },
    fails={
        "every bucket": _policy_or_trial(OBJECTS),
        "every repository": _policy_or_trial(IMAGES),
        "every bucket, by a family": _policy_or_trial(
            "Allow group scientists to manage object-family in compartment training"
        ),
        "every bucket but one": _policy_or_trial(f"{OBJECTS} where target.bucket.name != 'audit'"),
        "a pattern of one letter": _policy_or_trial(f"{OBJECTS} where target.bucket.name = /a*/"),
        "a pattern of every name": _policy_or_trial(f"{OBJECTS} where target.bucket.name = /*/"),
        "its bucket, or any in a region": _policy_or_trial(
            f"{OBJECTS} where any {{target.bucket.name = 'a', request.region = 'iad'}}"
        ),
        "a trial of another cloud": JudgedResource(
            POLICY, {"statements": [OBJECTS], "freeformTags": {WILDCARD_POLICIES: PROOF_OF_CONCEPT}}
        ),
        "every bucket of AWS": _document_allowing("s3:GetObject", ["arn:aws:s3:::*"]),
        "every bucket of AWS by another pattern": _document_allowing("s3:GetObject", "arn:*:s3:::?*/*"),
        "every role of AWS": _document_allowing("iam:PassRole", "arn:aws:iam::*:*"),
        "every secret of AWS": _document_allowing(
            "secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:123456789012:secret:*"
        ),
        "every repository of AWS": _document_allowing(
            "ecr:BatchGetImage", "arn:aws:ecr:us-east-1:123456789012:repository/*"
        ),
    },
    unknown={
        "names another resource": _policy_or_trial(Unknown("statements[0]")),
        "a document of another resource": JudgedResource("aws:iam/policy:Policy", {"policy": Unknown("policy")}),
    },
)
