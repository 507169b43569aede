# SPDX-License-Identifier: Apache-2.0
"""Whether a policy of AWS lets strangers in. It asks IAM's own evaluation with what a stranger's request has: a
condition that any stranger meets narrows nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from components.aws.iam.decide import UnknownConditionError, UnknownVariableError, condition_holds
from policies.addresses import hold_the_public
from policies.documents import ANY, as_list

_ACCOUNT, _ANY_TEXT = "666666666666", "stranger"
# What says who calls or from where, for a stranger. Other keys are the caller's choice, or are the same for everybody.
_WHO: Mapping[str, str] = {
    "aws:principalaccount": _ACCOUNT,
    "aws:principalarn": f"arn:aws:iam::{_ACCOUNT}:user/{_ANY_TEXT}",
    "aws:principalorgid": "o-stranger",
    "aws:principalorgpaths": "o-stranger/r-stranger/",
    "aws:principalisawsservice": "false",
    "aws:principalservicename": _ANY_TEXT,
    "aws:sourceaccount": _ACCOUNT,
    "aws:sourcearn": f"arn:aws:sns:us-east-1:{_ACCOUNT}:{_ANY_TEXT}",
    "aws:sourceorgid": "o-stranger",
    "aws:sourceowner": _ACCOUNT,
    "aws:sourcevpc": "vpc-stranger",
    "aws:sourcevpce": "vpce-stranger",
    "aws:vpceaccount": _ACCOUNT,
    "aws:vpceorgid": "o-stranger",
    "aws:userid": "AIDASTRANGER",
    "aws:username": _ANY_TEXT,
    "kms:calleraccount": _ACCOUNT,
    "s3:dataaccesspointaccount": _ACCOUNT,
    "s3:dataaccesspointarn": f"arn:aws:s3:us-east-1:{_ACCOUNT}:accesspoint/{_ANY_TEXT}",
}
# Of the resource's own account, to which conditions may compare the caller's.
_OF_RESOURCE: Mapping[str, str] = {"aws:resourceaccount": "123456789012", "aws:resourceorgid": "o-own"}
_ADDRESSES = ("aws:sourceip", "aws:vpcsourceip")
_COMPARES_CALLER = re.compile(r"\$\{aws:(Principal|Source)", re.IGNORECASE)
_ACCOUNT_NUMBER = re.compile(r"\d{12}")
# The claims of a token that say whose it is, and what a pattern of one has to begin with: `vision/`, and of a subject
# `repo:vision/` or `organization:vision:`. A stranger's token has the same audience, branch and environment.
_SUBJECT, _NAME = re.compile(r"[^:/*?]+[:/][^:/*?]+[:/]"), re.compile(r"[^:/*?]+[:/]")
_CLAIMS: Mapping[str, re.Pattern[str]] = {
    "sub": _SUBJECT,
    **dict.fromkeys(("repository", "repository_id", "repository_owner", "repository_owner_id"), _NAME),
    **dict.fromkeys(("job_workflow_ref", "project_path", "project_id", "namespace_path", "namespace_id"), _NAME),
    "organization_id": _NAME,
}

_Condition = tuple[str, str, tuple[str, ...]]
_Keys = Mapping[str, Sequence[str]]


def lets_strangers_in(statement: Mapping[str, Any]) -> bool:
    """Whether a statement of a resource's policy allows something to people whom it does not name."""
    if statement.get("Effect") != "Allow":
        return False
    principal, conditions = statement.get("Principal"), tuple(_conditions_of(statement))
    named = principal if isinstance(principal, Mapping) else {}
    if principal == ANY or "NotPrincipal" in statement or any(ANY in as_list(names) for names in named.values()):
        signed_in = {key: (value,) for key, value in {**_WHO, **_OF_RESOURCE}.items()}
        anonymous = {key: (value,) for key, value in _OF_RESOURCE.items()}
        return any(all(_meets(one, caller) for one in conditions) for caller in (signed_in, anonymous))
    # Anybody may get a token of such a provider, for any audience: other claims say whose it is.
    issuers = [str(name).partition(":oidc-provider/")[2].lower() for name in as_list(named.get("Federated"))]
    return any(issuer and not any(_names_owner(one, issuer) for one in conditions) for issuer in issuers)


def _conditions_of(statement: Mapping[str, Any]) -> Iterator[_Condition]:
    for operator, keys in (statement.get("Condition") or {}).items():
        for key, values in keys.items():
            texts = (str(value).lower() if isinstance(value, bool) else str(value) for value in as_list(values))
            yield str(operator), str(key), tuple(texts)


def _meets(condition: _Condition, caller: _Keys) -> bool:
    operator, key, wanted = condition
    name = key.lower()
    if name in _ADDRESSES:
        # The complement of a few addresses is the internet.
        return operator.startswith("Not") or hold_the_public(wanted)
    if name not in _WHO and not any(map(_COMPARES_CALLER.search, wanted)):
        return True
    try:
        return any(condition_holds(operator, key, wanted, one) for one in _callers_like(name, wanted, caller))
    except UnknownVariableError:
        return False  # as IAM does it: a variable without a value fits nothing
    except (UnknownConditionError, ValueError):
        return True  # AWS refuses what it cannot read, and nothing of it narrows


def _callers_like(name: str, wanted: Sequence[str], caller: _Keys) -> Iterator[_Keys]:
    """The caller, and the same with each name that a pattern asks for, in an account of its own: strangers call their
    roles as they like."""
    yield caller
    if name.endswith("arn") and name in caller:
        for pattern in wanted:
            parts = pattern.replace("?", "x").replace(ANY, _ANY_TEXT).split(":", 5)
            if len(parts) == 6:
                yield {**caller, name: (":".join((*parts[:4], _ACCOUNT, parts[5])),)}
            elif not _ACCOUNT_NUMBER.search(pattern):
                yield {**caller, name: (":".join(parts),)}


def _names_owner(condition: _Condition, issuer: str) -> bool:
    """Whether a condition on an issuer's tokens names their owner: as a whole, or with a pattern behind the name."""
    operator, key, wanted = condition
    of, _, claim = key.lower().rpartition(":")
    name = operator.removeprefix("ForAnyValue:")
    if of != issuer or claim not in _CLAIMS or name not in ("StringEquals", "StringEqualsIgnoreCase", "StringLike"):
        return False
    return name != "StringLike" or all(not set("*?") & set(text) or _CLAIMS[claim].match(text) for text in wanted)
