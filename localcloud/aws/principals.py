# SPDX-License-Identifier: Apache-2.0
"""Finds who signed a request: a user by an access key, or a role's session by temporary credentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.aws.iam.decide import AwsPrincipal
from localcloud.aws.account import ACCOUNT
from localcloud.aws.errors import Reason, RefusalError
from localcloud.server import http


@dataclass(frozen=True)
class Key:
    secret: str
    principal: AwsPrincipal
    token: str = ""


def find_key(key_id: str) -> Key:
    """Finds a key in moto's IAM and STS. Refuses it if it is unknown, inactive or expired."""
    from moto.iam.models import iam_backends
    from moto.sts.models import sts_backends

    session = sts_backends[ACCOUNT]["aws"].get_assumed_role_from_access_key(key_id)
    if session is not None:
        if session.expiration.timestamp() < http.now():
            raise RefusalError(Reason.EXPIRED_TOKEN, "The security token included in the request is expired")
        return Key(session.secret_access_key, _session(session), session.session_token)
    for name, user in _users(iam_backends[ACCOUNT]["aws"]):
        for key in user.access_keys:
            if key.access_key_id == key_id and key.status == "Active":
                return Key(key.secret_access_key, AwsPrincipal(user.arn, user=name, id=user.id))
    raise RefusalError(Reason.UNKNOWN_KEY, "The AWS Access Key Id you provided does not exist in our records.")


def _users(backend: Any) -> list[tuple[str, Any]]:
    return list(backend.users.items())


def _session(session: Any) -> AwsPrincipal:
    role = session.role_arn.rpartition("/")[2]
    name = session.session_name
    instance = name if name.startswith("i-") else ""
    return AwsPrincipal(
        session.arn, role=role, session=name, instance=instance, id=session.user_id, session_policy=session.policy or ""
    )
