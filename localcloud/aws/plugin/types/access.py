# SPDX-License-Identifier: Apache-2.0
"""Roles, instance profiles, policies and their attachments, and secrets."""

from collections.abc import Mapping
from typing import Any

from localcloud.aws.plugin.rows import AwsRow, Change, Read, Tagging, unused_read, words

_ROLE, _PROFILE = {"RoleName": "{id}"}, {"InstanceProfileName": "{id}"}
_TAKEN = frozenset({"EntityAlreadyExists"})


def _iam(inputs: str, outputs: str = "", **more: Any) -> AwsRow:
    return AwsRow(service="iam", inputs=words(inputs), outputs=words(outputs), **more)


def _inline(holder: str) -> AwsRow:
    """A policy inside a role or a group."""
    key, member = holder.lower(), f"{holder}Name"
    path = {member: f"{{{key}}}", "PolicyName": "{name}"}
    return _iam(
        f"{key} name namePrefix policy",
        create=f"Put{holder}Policy",
        id=f"{{{key}}}:{{name}}",
        reads=(Read(f"Get{holder}Policy", path),),
        delete=f"Delete{holder}Policy",
        delete_with=path,
        named="name",
        longest_name=128,
        changes=(Change(f"Put{holder}Policy", ("policy",), path),),
        renamed={key: member, "name": "PolicyName", "policy": "PolicyDocument"},
    )


def _attachment(holder: str) -> AwsRow:
    key, member = holder.lower(), f"{holder}Name"
    return _iam(
        f"{key} policyArn",
        create=f"Attach{holder}Policy",
        id=f"{{{key}}}/{{policyArn}}",
        reads=(
            Read(
                f"ListAttached{holder}Policies",
                {member: f"{{{key}}}"},
                "AttachedPolicies[?PolicyArn=='{policyArn}'] | [0]",
            ),
        ),
        delete=f"Detach{holder}Policy",
        delete_with={member: f"{{{key}}}", "PolicyArn": "{policyArn}"},
        renamed={key: member},
    )


_SECRET = {"SecretId": "{id}"}

ROWS: Mapping[str, AwsRow] = {
    "aws:iam/role:Role": _iam(
        "name namePrefix assumeRolePolicy path description maxSessionDuration permissionsBoundary forceDetachPolicies "
        "tags",
        "arn createDate uniqueId tagsAll",
        create="CreateRole",
        created="Role",
        id="{name}",
        reads=(
            Read("GetRole", _ROLE, "Role"),
            unused_read("ListRolePolicies", _ROLE),
            unused_read("ListAttachedRolePolicies", _ROLE),
        ),
        before_delete=(unused_read("ListInstanceProfilesForRole", _ROLE),),
        delete="DeleteRole",
        delete_with=_ROLE,
        named="name",
        extra=frozenset({"forceDetachPolicies"}),
        changes=(
            Change(
                "UpdateAssumeRolePolicy", ("assumeRolePolicy",), _ROLE, names={"assumeRolePolicy": "PolicyDocument"}
            ),
            Change("UpdateRoleDescription", ("description",), _ROLE),
            Change("UpdateRole", ("maxSessionDuration",), _ROLE),
            Change(
                "PutRolePermissionsBoundary",
                ("permissionsBoundary",),
                _ROLE,
                undo="DeleteRolePermissionsBoundary",
            ),
        ),
        renamed={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"},
        model_paths={
            "name": "RoleName",
            "permissionsBoundary": "PermissionsBoundary.PermissionsBoundaryArn",
            "uniqueId": "RoleId",
        },
        unset={"description": "", "maxSessionDuration": 3600},
        tagging=Tagging("TagRole", "UntagRole", _ROLE),
        existing="access: {{ existing: true, runs: {} }}",
        taken_codes=_TAKEN,
        behaviour="access.RoleResource",
    ),
    "aws:iam/rolePolicy:RolePolicy": _inline("Role"),
    "aws:iam/groupPolicy:GroupPolicy": _inline("Group"),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _attachment("Role"),
    "aws:iam/groupPolicyAttachment:GroupPolicyAttachment": _attachment("Group"),
    "aws:iam/instanceProfile:InstanceProfile": _iam(
        "name namePrefix path role tags",
        "arn createDate uniqueId tagsAll",
        create="CreateInstanceProfile",
        created="InstanceProfile",
        id="{name}",
        reads=(
            Read("GetInstanceProfile", _PROFILE, "InstanceProfile.merge(@, {holds: Roles[0].RoleName})"),
            unused_read("GetRole", {"RoleName": "{holds}"}, when="holds"),
        ),
        delete="DeleteInstanceProfile",
        delete_with=_PROFILE,
        named="name",
        longest_name=128,
        changes=(
            Change(
                "AddRoleToInstanceProfile",
                ("role",),
                _PROFILE,
                names={"role": "RoleName"},
                undo="RemoveRoleFromInstanceProfile",
                undo_with={**_PROFILE, "RoleName": "{role}"},
                exclusive=True,
            ),
        ),
        renamed={"name": "InstanceProfileName"},
        model_paths={"name": "InstanceProfileName", "role": "Roles[0].RoleName", "uniqueId": "InstanceProfileId"},
        tagging=Tagging("TagInstanceProfile", "UntagInstanceProfile", _PROFILE),
        taken_codes=_TAKEN,
        behaviour="access.NamedResource",
    ),
    "aws:iam/policy:Policy": _iam(
        "name namePrefix path description policy tags",
        "arn attachmentCount policyId tagsAll",
        create="CreatePolicy",
        created="Policy",
        id="{Arn}",
        reads=(
            Read("GetPolicy", {"PolicyArn": "{id}"}, "Policy"),
            Read(
                "GetPolicyVersion",
                {"PolicyArn": "{id}", "VersionId": "{DefaultVersionId}"},
                "{PolicyDocument: PolicyVersion.Document}",
            ),
        ),
        delete="DeletePolicy",
        delete_with={"PolicyArn": "{id}"},
        named="name",
        longest_name=128,
        changes=(Change("CreatePolicyVersion", ("policy",), {"PolicyArn": "{id}", "SetAsDefault": True}),),
        renamed={"name": "PolicyName", "policy": "PolicyDocument"},
        tagging=Tagging("TagPolicy", "UntagPolicy", {"PolicyArn": "{id}"}),
        taken_codes=_TAKEN,
        behaviour="access.PolicyResource",
    ),
    "aws:secretsmanager/secret:Secret": AwsRow(
        service="secretsmanager",
        inputs=words("name namePrefix description kmsKeyId policy recoveryWindowInDays tags"),
        outputs=words("arn tagsAll"),
        create="CreateSecret",
        id="{ARN}",
        reads=(
            Read("DescribeSecret", _SECRET, "DeletedDate == null && @ || null"),
            Read(
                "GetResourcePolicy",
                _SECRET,
                "{ResourcePolicy: ResourcePolicy}",
                frozenset({"ResourceNotFoundException"}),
            ),
        ),
        delete="DeleteSecret",
        delete_with=_SECRET,
        named="name",
        longest_name=512,
        extra=frozenset({"recoveryWindowInDays"}),
        changes=(
            Change("UpdateSecret", ("description", "kmsKeyId"), _SECRET, together=True),
            Change("PutResourcePolicy", ("policy",), _SECRET, undo="DeleteResourcePolicy"),
        ),
        renamed={"policy": "ResourcePolicy"},
        unset={"description": ""},
        tagging=Tagging("TagResource", "UntagResource", _SECRET),
        taken_codes=frozenset({"ResourceExistsException", "InvalidRequestException"}),
        behaviour="access.SecretResource",
    ),
    "aws:secretsmanager/secretVersion:SecretVersion": AwsRow(
        service="secretsmanager",
        inputs=words("secretId secretString secretBinary versionStages"),
        outputs=words("arn versionId"),
        create="PutSecretValue",
        id="{secretId}|{VersionId}",
        reads=(Read("GetSecretValue", {"SecretId": "{secretId}", "VersionId": "{versionId}"}),),
        delete="UpdateSecretVersionStage",
        delete_with={},
        secret_outputs=frozenset({"secretString", "secretBinary"}),
        behaviour="access.VersionResource",
    ),
}
