# SPDX-License-Identifier: Apache-2.0
"""The policies in force for a principal, read from moto's IAM and S3 at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from components.aws.iam.decide import AwsPrincipal, InForce, Need
from components.aws.iam.documents import PolicyDocument, UnreadableDocumentError, statements_of
from localcloud.aws.account import ADMINISTRATORS
from localcloud.aws.moto_state import moto_backend

# Prefix of actions -> the name of the service's VPC endpoint, if it differs.
_NAMES = {"ecr": "ecr.api"}
# The resources that have policies, by service: words for the policy, and the resource in moto's backend by the end of
# its ARN. The policy of a bucket is also for its objects.
_WITH_POLICIES: Mapping[str, tuple[str, Callable[[Any, str], Any]]] = {
    "s3": ("bucket policy", lambda backend, name: backend.buckets.get(name.partition("/")[0])),
    "ecr": ("repository policy", lambda backend, name: backend.repositories.get(name.removeprefix("repository/"))),
    "kms": ("key policy", lambda backend, name: backend.keys.get(name.removeprefix("key/"))),
    "secretsmanager": (
        "secret's policy",
        lambda backend, name: next((one for one in backend.secrets.values() if one.arn.endswith(f":{name}")), None),
    ),
}
_Named = tuple[str, str]
# On AWS, the account's root user may always do these. The local account has none, so its administrators may.
_OF_THE_OWNER = frozenset({"s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"})


def endpoint_policies_of_instance(instance: str, action: str) -> Iterator[tuple[str, str]]:
    """The policies of the VPC endpoints that an instance's call passes: their names and documents."""
    from localcloud.aws.additions import machine_view

    one = machine_view.find_instance(instance)
    if one is None:
        return
    service = action.partition(":")[0]
    for endpoint in list(one.ec2_backend.vpc_end_points.values()):
        if endpoint.vpc_id == one.vpc_id and endpoint.service_name.endswith(f".{_NAMES.get(service, service)}"):
            yield "VPC endpoint policy", endpoint.policy_document


def in_force(principal: AwsPrincipal, need: Need) -> InForce:
    """The policies that apply to this principal and this need."""
    backend = moto_backend("iam")
    identity: list[_Named] = []
    limits: list[_Named] = []
    if principal.user and principal.user in backend.users:
        user = backend.users[principal.user]
        identity += attached_policies(user)
        for group in backend.groups.values():
            if user in group.users:
                identity += attached_policies(group)
        limits += _permissions_boundary(backend, user)
    role = role_named(principal.role) if principal.role else None
    if role is not None:
        identity += attached_policies(role)
        limits += _permissions_boundary(backend, role)
        if principal.session_policy:
            limits.append(("session policy", principal.session_policy))
    user, administrators = backend.users.get(principal.user), backend.groups.get(ADMINISTRATORS)
    is_administrator = user is not None and administrators is not None and user in administrators.users
    owns = need.action in _OF_THE_OWNER and is_administrator
    if principal.instance:
        limits += endpoint_policies_of_instance(principal.instance, need.action)
    try:
        of_resource = () if owns else _parse_documents(_resource_policies(need.resource))
        # The policy of a KMS key has to let its account's own policies decide.
        return InForce(
            _parse_documents(identity),
            _parse_documents(limits),
            of_resource,
            delegated=bool(of_resource) and need.resource.startswith("arn:aws:kms:"),
        )
    except UnreadableDocumentError as error:
        return InForce((), (), (), f"a policy document ({error})")


def role_named(name: str) -> Any:
    return next((role for role in moto_backend("iam").roles.values() if role.name == name), None)


def named_instance_profiles(name: str, arn: str) -> list[Any]:
    """The instance profiles with this name or ARN, of which a call may give both."""
    profiles = moto_backend("iam").instance_profiles.values()
    return [profile for profile in profiles if profile.name == name or profile.arn == arn]


def trust_of(role: Any) -> PolicyDocument:
    """A role's trust policy. If it cannot be parsed, it trusts nobody."""
    try:
        return PolicyDocument("trust policy", statements_of(role.assume_role_policy_document or ""))
    except UnreadableDocumentError:
        return PolicyDocument("trust policy", ())


def attached_policies(owner: Any) -> Iterator[_Named]:
    """The policies of a user, group or role: their names and documents."""
    yield from ((name, _document_text(document)) for name, document in owner.policies.items())
    for policy in owner.managed_policies.values():
        yield policy.name, _default_version_document(policy)


def _default_version_document(policy: Any) -> str:
    """The document of a managed policy's default version, which is the one in force."""
    return next(_document_text(one.document) for one in policy.versions if one.version_id == policy.default_version_id)


def _permissions_boundary(backend: Any, owner: Any) -> list[_Named]:
    arn = getattr(owner, "permissions_boundary_arn", None) or getattr(owner, "permissions_boundary", None)
    if not arn:
        return []
    policy = backend.managed_policies.get(arn)
    return [("permissions boundary", _default_version_document(policy) if policy else "")]


def _resource_policies(arn: str) -> list[_Named]:
    """The policy of a resource."""
    parts = arn.split(":", 5)
    if len(parts) < 6 or parts[2] not in _WITH_POLICIES:
        return []
    words, find = _WITH_POLICIES[parts[2]]
    policy = getattr(find(moto_backend(parts[2], parts[3] or "aws"), parts[5]), "policy", None)
    return [(words, _document_text(policy))] if policy else []


def _parse_documents(rows: list[_Named]) -> tuple[PolicyDocument, ...]:
    return tuple(PolicyDocument(name, statements_of(document)) for name, document in rows)


def _document_text(document: Any) -> str:
    import json

    if isinstance(document, bytes):
        return document.decode()
    return document if isinstance(document, str) else json.dumps(document)
