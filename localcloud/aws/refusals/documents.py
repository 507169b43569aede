# SPDX-License-Identifier: Apache-2.0
"""Refuses policy documents that are malformed or too long, or that name missing principals.

moto checks the grammar of most IAM documents. This module checks that of resource policies and trust policies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.tables import table
from components.aws.iam.decide import fits_wildcards, is_operator
from components.aws.iam.documents import STATEMENT_KEYS
from localcloud.aws.account import ACCOUNT
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.calls import AwsCall
from localcloud.aws.moto_state import moto_backend
from localcloud.server.http import parse_strict_json

_SPACE = re.compile(r"\s")
_ENTITY = re.compile(r"arn:aws:iam::(\d{12}):(user|role)/(.+)")
_ACCOUNT = re.compile(r"\d{12}|arn:aws:iam::\d{12}:root|arn:aws:sts::\d{12}:[a-z-]+/.+|A[A-Z]{2}A[A-Z0-9]{12,}|\*")


class _MalformedError(Exception):
    """A document is malformed. The text is AWS's message."""


def refuse_policy_documents(call: AwsCall) -> None:
    """Refuses a call with an invalid policy document."""
    for row in table("aws_refusals")["document"]:
        if call.name not in row["operations"]:
            continue
        if row.get("optional") and not call.text(row["parameter"]):
            continue
        text = call.body.decode() if row["parameter"] == "" else call.text(row["parameter"])
        try:
            _check_document(text, row["kind"], call)
        except _MalformedError as problem:
            raise RefusalError(Reason.REFUSED, str(problem), row["code"], 400) from None
        if not (most := row.get("most", {}).get(call.operation)):
            continue
        # White space does not count. The inline policies of a user, group or role count together.
        length = sum(len(_SPACE.sub("", one)) for one in (text, *_other_documents(call)))
        if length > most:
            owner = next((call.text(name) for name in ("RoleName", "GroupName", "UserName") if call.text(name)), "")
            kind = call.operation.removeprefix("Put").removesuffix("Policy").lower()
            message = row["too_long"].format(most=most, kind=kind, owner=owner)
            raise RefusalError(Reason.REFUSED, message, "LimitExceeded", 409)


def _check_document(text: str, kind: str, call: AwsCall) -> None:
    try:
        document = parse_strict_json(text.encode())
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _MalformedError("Policies must be valid JSON and the first byte must be '{'")
    if unknown := document.keys() - {"Version", "Id", "Statement"}:
        raise _MalformedError(f"Unknown field {min(unknown)}")
    statements = document.get("Statement")
    statements = [statements] if isinstance(statements, dict) else statements
    if not isinstance(statements, list) or not statements:
        raise _MalformedError("Missing required field Statement")
    for statement in statements:
        if not isinstance(statement, dict):
            raise _MalformedError("Invalid policy syntax.")
        if unknown := statement.keys() - STATEMENT_KEYS:
            raise _MalformedError(f"Unknown field {min(unknown)}")
        if any(one in statement and f"Not{one}" in statement for one in ("Action", "Resource", "Principal")):
            raise _MalformedError("Invalid policy syntax.")
        if "Effect" not in statement:
            raise _MalformedError("Missing required field Effect")
        if statement["Effect"] not in ("Allow", "Deny"):
            raise _MalformedError(f"Invalid effect: {statement['Effect']}")
        if not _field_texts(statement.get("Action", statement.get("NotAction"))):
            raise _MalformedError("Missing required field Action")
        _check_fields(statement, kind)
        _check_conditions(statement.get("Condition", {}))
        if kind != "identity":
            _check_principals(statement)
        if kind == "bucket":
            _check_resources(statement, call.text("Bucket"))


def _check_fields(statement: Mapping[str, Any], kind: str) -> None:
    """Refuses a principal in an identity policy, a resource in a trust policy, and missing required fields."""
    named = "Principal" in statement or "NotPrincipal" in statement
    if kind == "identity" and named:
        raise _MalformedError("Policy document should not specify a principal.")
    if kind != "identity" and not named:
        raise _MalformedError("Missing required field Principal")
    resources = _field_texts(statement.get("Resource", statement.get("NotResource")))
    actions = _field_texts(statement.get("Action", statement.get("NotAction")))
    if kind == "trust" and not all(one.lower().startswith("sts:") for one in actions):
        raise _MalformedError("AssumeRole policy may only specify STS AssumeRole actions.")
    if kind == "trust" and resources:
        raise _MalformedError("Has prohibited field Resource")
    if kind not in ("trust", "repository") and not resources:
        raise _MalformedError("Missing required field Resource")


def _check_conditions(conditions: Any) -> None:
    if not isinstance(conditions, dict):
        raise _MalformedError("Invalid policy syntax.")
    for operator, keys in conditions.items():
        if not is_operator(operator):
            raise _MalformedError(f"Invalid Condition type : {operator}")
        values = list(keys.values()) if isinstance(keys, dict) else [None]
        texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
        if not all(isinstance(text, str | bool | int | float) for text in texts):
            raise _MalformedError("Invalid policy syntax.")


def _check_principals(statement: Mapping[str, Any]) -> None:
    """Refuses users and roles of this account that do not exist."""
    principals = statement.get("Principal", statement.get("NotPrincipal"))
    if principals == "*":
        return
    if not isinstance(principals, dict) or not principals:
        raise _MalformedError("Invalid principal in policy")
    for kind, names in principals.items():
        if kind not in ("AWS", "Service", "Federated", "CanonicalUser") or not _field_texts(names):
            raise _MalformedError("Invalid principal in policy")
        for name in _field_texts(names) if kind == "AWS" else ():
            if not _principal_exists(name):
                raise _MalformedError(f'Invalid principal in policy: "AWS":"{name}"')


def _principal_exists(name: str) -> bool:
    entity = _ENTITY.fullmatch(name)
    if entity is None:
        return _ACCOUNT.fullmatch(name) is not None
    backend = moto_backend("iam")
    owners = backend.users if entity[2] == "user" else backend.roles
    return entity[1] != ACCOUNT or any(one.arn == name for one in list(owners.values()))


def _check_resources(statement: Mapping[str, Any], bucket: str) -> None:
    for name in _field_texts(statement.get("Resource", statement.get("NotResource"))):
        own = name == "*" or (name.startswith("arn:aws:s3:::") and fits_wildcards(name[13:].partition("/")[0], bucket))
        if not own:
            raise _MalformedError("Policy has invalid resource")


def _field_texts(value: Any) -> list[str]:
    """The texts of a field that is a text or a list of texts; [] for anything else."""
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(one, str) for one in values) else []


def _other_documents(call: AwsCall) -> Iterator[str]:
    backend = moto_backend("iam")
    owners = {"PutRolePolicy": backend.roles, "PutGroupPolicy": backend.groups, "PutUserPolicy": backend.users}
    name = call.text("RoleName") or call.text("GroupName") or call.text("UserName")
    owner = next((one for one in owners.get(call.operation, {}).values() if one.name == name), None)
    for policy, document in (owner.policies if owner is not None else {}).items():
        if policy != call.text("PolicyName"):
            yield document if isinstance(document, str) else json.dumps(document)
