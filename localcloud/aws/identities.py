# SPDX-License-Identifier: Apache-2.0
"""The identities in moto's IAM: fills a new account with users and managed policies, and finds who signed a request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from components.aws.iam.decide import AwsPrincipal
from localcloud.aws.account import ACCOUNT, PEOPLE, AccessKeyPair
from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.moto_state import moto_backend
from localcloud.server import http

# The managed policies that are usually attached to machines and users. AWS has over a thousand, and all would be
# written to disk with every change of IAM.
MANAGED = (
    "AdministratorAccess", "PowerUserAccess", "ReadOnlyAccess", "AmazonSSMManagedInstanceCore",
    "AmazonSSMFullAccess", "AmazonS3FullAccess", "AmazonS3ReadOnlyAccess", "AmazonEC2ContainerRegistryPowerUser",
    "AmazonEC2ContainerRegistryPullOnly", "AmazonEC2ContainerRegistryReadOnly", "AmazonEC2FullAccess",
    "AmazonEC2ReadOnlyAccess",
    "CloudWatchAgentServerPolicy", "CloudWatchLogsFullAccess", "CloudWatchReadOnlyAccess", "IAMFullAccess",
)  # fmt: skip


def add_managed_policies() -> None:
    """Adds the managed policies in `MANAGED`, from moto's data."""
    from moto.iam.aws_managed_policies import aws_managed_policies_data
    from moto.iam.models import AWSManagedPolicy

    backend = moto_backend("iam")
    data = json.loads(aws_managed_policies_data)
    for name in MANAGED:
        policy = AWSManagedPolicy.from_data(name, ACCOUNT, "aws", data[name])
        if policy.arn not in backend.managed_policies:
            backend.managed_policies[policy.arn] = policy
            backend.aws_managed_policies.append(policy)


def add_people(keys: Mapping[str, AccessKeyPair]) -> None:
    """Adds users and groups that do not exist yet."""
    backend = moto_backend("iam")
    for person in PEOPLE:
        if person.profile in backend.users:
            continue
        backend.create_user("aws", person.profile, "/")
        if person.group not in backend.groups:
            backend.create_group(person.group, "/")
        backend.add_user_to_group(person.group, person.profile)
        for policy in person.managed:
            backend.attach_group_policy(policy, person.group)
        key = backend.create_access_key(person.profile)
        del backend.access_keys[key.physical_resource_id]
        key.access_key_id, key.secret_access_key = keys[person.profile].id, keys[person.profile].secret
        backend.access_keys[key.physical_resource_id] = key


@dataclass(frozen=True)
class Key:
    secret: str
    principal: AwsPrincipal
    token: str = ""


def find_access_key(key_id: str) -> Key:
    """The access key with this id: a user's, or one of temporary credentials. Refuses an unknown, inactive or expired
    key, and one of a role that was deleted."""
    backend = moto_backend("iam")
    session = moto_backend("sts").get_assumed_role_from_access_key(key_id)
    if session is not None:
        if session.expiration.timestamp() < http.current_moment():
            raise RefusalError(Reason.EXPIRED_TOKEN, "The security token included in the request is expired")
        role, name = role_of_session(session), session.session_name
        if role is None:
            raise RefusalError(Reason.BAD_TOKEN, "The security token included in the request is invalid")
        principal = AwsPrincipal(
            session.arn, role=role.name, session=name, instance=name if name.startswith("i-") else "",
            id=f"{role.id}:{name}", session_policy=session.policy or "", role_arn=role.arn,
            since=datetime.fromtimestamp(session.trainyard_since, UTC).isoformat(), tags=_owner_tags(role),
        )  # fmt: skip
        return Key(session.secret_access_key, principal, session.session_token)
    for name, user in list(backend.users.items()):
        for key in user.access_keys:
            if key.access_key_id == key_id and key.status == "Active":
                return Key(key.secret_access_key, AwsPrincipal(user.arn, user=name, id=user.id, tags=_owner_tags(user)))
    raise RefusalError(Reason.UNKNOWN_KEY, "The AWS Access Key Id you provided does not exist in our records.")


def role_of_session(session: Any) -> Any:
    """The role of a session, or None if it was deleted. A new role of that name is another one."""
    roles = moto_backend("iam").roles.values()
    identifier = getattr(session, "trainyard_role", "")
    return next((role for role in roles if role.id == identifier and role.arn == session.role_arn), None)


def remember_session(session: Any, *_: Any, **__: Any) -> None:
    """Completes a new session of moto: it knows when it began, and the id of its role."""
    session.trainyard_since = http.current_moment()
    session.trainyard_role = session.user_id.partition(":")[0]


def give_profile_id(profile: Any, *_: Any, **__: Any) -> None:
    """Gives a new instance profile of moto an id like AWS's."""
    from moto.iam.utils import generate_access_key_id_from_account_id

    profile.id = generate_access_key_id_from_account_id(ACCOUNT, prefix="AIPA", total_length=21)


def show_profile_id(association: Any, *_: Any, **__: Any) -> None:
    """Shows the id of the profile in a new instance of moto that has one."""
    association.instance.iam_instance_profile["Id"] = association.iam_instance_profile.id


def _owner_tags(owner: Any) -> tuple[tuple[str, str], ...]:
    return tuple((tag["Key"], tag["Value"]) for tag in owner.tags or ())
