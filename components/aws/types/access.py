# SPDX-License-Identifier: Apache-2.0
"""Roles, instance profiles, policies and their attachments."""

from typing import Any

from components.aws.types.aws_resource_type import (
    AwsResourceType,
    Change,
    Creation,
    Deletion,
    Read,
    RealProvider,
    Tagging,
    aws_type,
    unused_read,
)
from components.values.resource_types import OwnPolicy, ResourceType, input_names, inputs_in_reviews

_ROLE, _PROFILE, _POLICY = {"RoleName": "{id}"}, {"InstanceProfileName": "{id}"}, {"PolicyArn": "{id}"}


def _inline_type(holder: str, **fields: Any) -> AwsResourceType:
    """A policy inside a role or a group."""
    key, member = holder.lower(), f"{holder}Name"
    path = {member: f"{{{key}}}", "PolicyName": "{name}"}
    return aws_type(
        f"aws:iam/{key}Policy:{holder}Policy",
        "iam",
        f"{key} name namePrefix policy",
        named="name",
        longest_name=128,
        renamed={key: member, "name": "PolicyName", "policy": "PolicyDocument"},
        replaced_by=f"{key} name namePrefix",
        create=Creation(f"Put{holder}Policy", f"{{{key}}}:{{name}}"),
        reads=(Read(f"Get{holder}Policy", path),),
        changes=(Change(f"Put{holder}Policy", ("policy",), path),),
        delete=Deletion(f"Delete{holder}Policy", path),
        provider=RealProvider(f"iam/{key}_policy.go"),
        in_reviews=inputs_in_reviews(judged=f"{key} name namePrefix policy"),
        part="inline policy",
        document="policy",
        holders={key: key},
        **fields,
    )


def _attachment_type(holder: str) -> AwsResourceType:
    key, path = holder.lower(), {f"{holder}Name": f"{{{holder.lower()}}}"}
    found = "AttachedPolicies[?PolicyArn=='{policyArn}'] | [0]"
    return aws_type(
        f"aws:iam/{key}PolicyAttachment:{holder}PolicyAttachment",
        "iam",
        f"{key} policyArn",
        renamed={key: f"{holder}Name"},
        replaced_by=f"{key} policyArn",
        create=Creation(f"Attach{holder}Policy", f"{{{key}}}/{{policyArn}}"),
        reads=(Read(f"ListAttached{holder}Policies", path, found),),
        delete=Deletion(f"Detach{holder}Policy", {**path, "PolicyArn": "{policyArn}"}),
        provider=RealProvider(f"iam/{key}_policy_attachment.go"),
        in_reviews=inputs_in_reviews(judged=f"{key} policyArn"),
        part="policy attachment",
        holders={key: key},
    )


ACCESS_TYPES = (
    aws_type(
        "aws:iam/role:Role", "iam",
        "name namePrefix assumeRolePolicy path description maxSessionDuration permissionsBoundary forceDetachPolicies "
        "tags",
        "arn createDate uniqueId", extra="forceDetachPolicies", named="name",
        renamed={"name": "RoleName", "assumeRolePolicy": "AssumeRolePolicyDocument"},
        model_paths={
            "name": "RoleName", "permissionsBoundary": "PermissionsBoundary.PermissionsBoundaryArn",
            "uniqueId": "RoleId",
        },
        unset={"description": "", "maxSessionDuration": 3600, "path": "/"},
        replaced_by="name namePrefix path",
        create=Creation("CreateRole", "{name}", "Role"),
        reads=(
            Read("GetRole", _ROLE, "Role"), unused_read("ListRolePolicies", _ROLE),
            unused_read("ListAttachedRolePolicies", _ROLE),
        ),
        changes=(
            Change(
                "UpdateAssumeRolePolicy", ("assumeRolePolicy",), _ROLE, names={"assumeRolePolicy": "PolicyDocument"},
            ),
            Change("UpdateRoleDescription", ("description",), _ROLE),
            Change("UpdateRole", ("maxSessionDuration",), _ROLE),
            Change(
                "PutRolePermissionsBoundary", ("permissionsBoundary",), _ROLE, undo="DeleteRolePermissionsBoundary",
            ),
        ),
        delete=Deletion("DeleteRole", _ROLE, (unused_read("ListInstanceProfilesForRole", _ROLE),)),
        tagging=Tagging("TagRole", "UntagRole", _ROLE), taken_codes="EntityAlreadyExists",
        existing="access: {{ existing: true, runs: {} }}", behaviour="access.RoleResource",
        # A profile may still have it as it is deleted, and somebody may have given it a policy of its own.
        provider=RealProvider(
            "iam/role.go",
            calls={
                "forceDetachPolicies": "ListRolePolicies ListAttachedRolePolicies DetachRolePolicy DeleteRolePolicy",
                "inProfile": "RemoveRoleFromInstanceProfile", "inlinePolicies": "GetRolePolicy",
            },
            unreached={"policies are resources of their own": "AttachRolePolicy PutRolePolicy"},
        ),
        part="role", own_policy=OwnPolicy("role", "name", "assumeRolePolicy"),
        # May be doubled on request; those of other documents are never raised.
        most_characters=4096,
        arns=dict.fromkeys(("iam", "sts"), "arn:aws:iam::{account}:role/{id}"),
        in_reviews=inputs_in_reviews(
            judged="assumeRolePolicy inlinePolicies managedPolicyArns name namePrefix permissionsBoundary",
            plain={"how a destroy removes it": "forceDetachPolicies"},
        ),
    ),
    aws_type(
        "aws:iam/instanceProfile:InstanceProfile", "iam", "name namePrefix path role tags", "arn createDate uniqueId",
        named="name", longest_name=128, renamed={"name": "InstanceProfileName"},
        model_paths={"name": "InstanceProfileName", "role": "Roles[0].RoleName", "uniqueId": "InstanceProfileId"},
        replaced_by="name namePrefix path", unset={"path": "/"},
        create=Creation("CreateInstanceProfile", "{name}", "InstanceProfile"),
        reads=(
            Read("GetInstanceProfile", _PROFILE, "InstanceProfile.merge(@, {holds: Roles[0].RoleName})"),
            unused_read("GetRole", {"RoleName": "{holds}"}, when="holds", only_for="role"),
        ),
        changes=(
            Change(
                "AddRoleToInstanceProfile", ("role",), _PROFILE, names={"role": "RoleName"},
                undo="RemoveRoleFromInstanceProfile", undo_with={**_PROFILE, "RoleName": "{role}"}, exclusive=True,
            ),
        ),
        delete=Deletion("DeleteInstanceProfile", _PROFILE),
        tagging=Tagging("TagInstanceProfile", "UntagInstanceProfile", _PROFILE), taken_codes="EntityAlreadyExists",
        behaviour="access.NamedResource",
        provider=RealProvider(
            "iam/instance_profile.go", actions={"role": "iam:PassRole"},
        ),
        in_reviews=inputs_in_reviews(placed="name namePrefix path role"),
    ),
    aws_type(
        "aws:iam/policy:Policy", "iam", "name namePrefix path description policy tags", "arn attachmentCount policyId",
        named="name", longest_name=128, renamed={"name": "PolicyName", "policy": "PolicyDocument"},
        replaced_by="description name namePrefix path", unset={"path": "/"},
        create=Creation("CreatePolicy", "{Arn}", "Policy"),
        reads=(
            Read("GetPolicy", _POLICY, "Policy"),
            Read(
                "GetPolicyVersion", {**_POLICY, "VersionId": "{DefaultVersionId}"},
                "{PolicyDocument: PolicyVersion.Document}",
            ),
        ),
        changes=(Change("CreatePolicyVersion", ("policy",), {**_POLICY, "SetAsDefault": True}),),
        delete=Deletion("DeletePolicy", _POLICY), tagging=Tagging("TagPolicy", "UntagPolicy", _POLICY),
        taken_codes="EntityAlreadyExists", behaviour="access.PolicyResource",
        provider=RealProvider(
            "iam/policy.go",
            calls={"delete": "ListPolicyVersions", "policy": "ListPolicyVersions DeletePolicyVersion"},
        ),
        in_reviews=inputs_in_reviews(judged="name namePrefix policy"),
        part="policy", document="policy", most_characters=6144,
    ),
    _inline_type("Role"),
    _attachment_type("Role"),
    _inline_type("Group", most_characters=5120),
    _attachment_type("Group"),
    ResourceType(
        token="aws:iam/userPolicy:UserPolicy", replaced_by=input_names("name namePrefix user"),
        part="inline policy", document="policy", most_characters=2048, holders={"user": "user"},
        in_reviews=inputs_in_reviews(judged="name namePrefix policy user"),
    ),
    ResourceType(
        token="aws:iam/userPolicyAttachment:UserPolicyAttachment", replaced_by=input_names("policyArn user"),
        part="policy attachment", holders={"user": "user"},
        in_reviews=inputs_in_reviews(judged="policyArn user"),
    ),
    ResourceType(
        token="aws:ssoadmin/permissionSetInlinePolicy:PermissionSetInlinePolicy",
        replaced_by=input_names("instanceArn permissionSetArn"), document="inlinePolicy",
    ),
    ResourceType(
        token="aws:iam/policyAttachment:PolicyAttachment", replaced_by=input_names("name policyArn"),
        unordered=input_names("groups roles users"),
        part="policy attachment", holders={"roles": "role", "groups": "group", "users": "user"},
        in_reviews=inputs_in_reviews(judged="groups policyArn roles users", placed="name"),
    ),
)  # fmt: skip
