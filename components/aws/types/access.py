# SPDX-License-Identifier: Apache-2.0
"""Roles, policies and secrets."""

from components.values.resource_types import LostWith, ResourceType, input_names

ACCESS_TYPES = (
    ResourceType(
        token="aws:iam/role:Role",
        tags="tags",
        replaced_by=input_names("name namePrefix path"),
    ),
    ResourceType(
        token="aws:iam/rolePolicy:RolePolicy",
        replaced_by=input_names("name namePrefix role"),
    ),
    ResourceType(
        token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        replaced_by=input_names("policyArn role"),
    ),
    ResourceType(
        token="aws:iam/groupPolicy:GroupPolicy",
        replaced_by=input_names("group name namePrefix"),
    ),
    ResourceType(
        token="aws:iam/groupPolicyAttachment:GroupPolicyAttachment",
        replaced_by=input_names("group policyArn"),
    ),
    ResourceType(
        token="aws:iam/instanceProfile:InstanceProfile",
        tags="tags",
        replaced_by=input_names("name namePrefix path"),
    ),
    ResourceType(
        token="aws:iam/policy:Policy",
        tags="tags",
        replaced_by=input_names("description name namePrefix path"),
    ),
    ResourceType(
        token="aws:secretsmanager/secret:Secret",
        tags="tags",
        replaced_by=input_names("name namePrefix"),
        computed=input_names("policy"),
        lost=LostWith(
            "the secret {name} goes at once: nodes that read it then fail", "let the runs end first", ("name",)
        ),
    ),
    ResourceType(
        token="aws:secretsmanager/secretVersion:SecretVersion",
        replaced_by=input_names("secretBinary secretId secretString"),
        computed=input_names("versionStages"),
    ),
)
