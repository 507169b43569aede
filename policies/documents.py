# SPDX-License-Identifier: Apache-2.0
"""Policy documents of AWS, as resources carry them: JSON in a text, or the same as values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

ANY = "*"
# Where types keep a document that says what its owner may do.
IDENTITY_POLICIES = {
    "aws:iam/policy:Policy": "policy",
    "aws:iam/rolePolicy:RolePolicy": "policy",
    "aws:iam/groupPolicy:GroupPolicy": "policy",
    "aws:iam/userPolicy:UserPolicy": "policy",
}
# Where types keep a document that says who may use them.
ROLE = "aws:iam/role:Role"
BUCKET_POLICY = "aws:s3/bucketPolicy:BucketPolicy"
REPOSITORY_POLICY = "aws:ecr/repositoryPolicy:RepositoryPolicy"
RESOURCE_POLICIES = {
    ROLE: "assumeRolePolicy",
    BUCKET_POLICY: "policy",
    REPOSITORY_POLICY: "policy",
    "aws:kms/key:Key": "policy",
    "aws:secretsmanager/secretPolicy:SecretPolicy": "policy",
}


class DocumentError(ValueError):
    """What is wrong with a document."""


def statements_of(document: Any) -> Sequence[Mapping[str, Any]]:
    """The statements of a document; none where there is no document. Raises DocumentError."""
    if not document:
        return ()
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError as problem:
            raise DocumentError(f"it is not JSON: {problem}") from None
    if not isinstance(document, Mapping) or not document.get("Statement"):
        raise DocumentError("it has no `Statement`")
    found = listed(document["Statement"])
    if not all(isinstance(one, Mapping) for one in found):
        raise DocumentError("a statement is not an object")
    return found


def readable_statements(document: Any) -> Sequence[Mapping[str, Any]]:
    """The same for rules that judge what a document says: statements-parse reports one that cannot be read."""
    try:
        return statements_of(document)
    except DocumentError:
        return ()


def listed(value: Any) -> Sequence[Any]:
    """IAM takes one value where a list of one is meant."""
    if value is None:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def is_open_to_all(statement: Mapping[str, Any]) -> bool:
    """Whether it lets anybody in, in any account. A condition narrows whom it means."""
    if statement.get("Effect") != "Allow" or statement.get("Condition"):
        return False
    principal = statement.get("Principal")
    if isinstance(principal, Mapping):
        return any(ANY in listed(named) for named in principal.values())
    return principal == ANY or "NotPrincipal" in statement
