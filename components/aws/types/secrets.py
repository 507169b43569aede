# SPDX-License-Identifier: Apache-2.0
"""Secrets, their versions, and keys."""

from components.aws.types.aws_resource_type import (
    Change,
    Creation,
    Deletion,
    LiveState,
    Read,
    RealProvider,
    Tagging,
    aws_type,
)
from components.values.resource_types import LostWith, OwnPolicy, ResourceType, input_names, inputs_in_reviews

_SECRET = {"SecretId": "{id}"}


SECRET_TYPES = (
    aws_type(
        "aws:secretsmanager/secret:Secret", "secretsmanager",
        "name namePrefix description kmsKeyId policy recoveryWindowInDays tags", "arn", extra="recoveryWindowInDays",
        named="name", longest_name=512, renamed={"policy": "ResourcePolicy"}, unset={"description": ""},
        replaced_by="name namePrefix", computed="policy",
        create=Creation("CreateSecret", "{ARN}"),
        reads=(
            Read("DescribeSecret", _SECRET, "DeletedDate == null && @ || null"),
            Read("GetResourcePolicy", _SECRET, "{ResourcePolicy: ResourcePolicy}", "ResourceNotFoundException"),
        ),
        changes=(
            Change("UpdateSecret", ("description", "kmsKeyId"), _SECRET, together=True),
            Change("PutResourcePolicy", ("policy",), _SECRET, undo="DeleteResourcePolicy"),
        ),
        delete=Deletion("DeleteSecret", _SECRET), tagging=Tagging("TagResource", "UntagResource", _SECRET),
        taken_codes="ResourceExistsException InvalidRequestException", behaviour="access.SecretResource",
        provider=RealProvider(
            "secretsmanager/secret.go",
            unreached={"copies in other regions": "ReplicateSecretToRegions RemoveRegionsFromReplication"},
        ),
        lost=LostWith(
            "the secret {name} goes at once: nodes that read it then fail", "let the runs end first", ("name",),
        ),
        arns={"secretsmanager": "arn:aws:secretsmanager:{region}:{account}:secret:{id}"},
        live=LiveState(
            what="the secret {name}", policy_type="aws:secretsmanager/secretPolicy:SecretPolicy",
            policy=Read("GetResourcePolicy", _SECRET, "ResourcePolicy"),
        ),
        in_reviews=inputs_in_reviews(placed="kmsKeyId name namePrefix recoveryWindowInDays"),
    ),
    aws_type(
        "aws:secretsmanager/secretVersion:SecretVersion", "secretsmanager",
        "secretId secretString secretBinary versionStages", "arn versionId",
        secret_outputs="secretString secretBinary",
        replaced_by="secretBinary secretId secretString", computed="versionStages",
        create=Creation("PutSecretValue", "{secretId}|{VersionId}"),
        reads=(Read("GetSecretValue", {"SecretId": "{secretId}", "VersionId": "{versionId}"}),),
        delete=Deletion("", {}), behaviour="access.VersionResource",
        # A version that others have replaced keeps stages but AWSCURRENT, which are taken from it before it goes.
        provider=RealProvider(
            "secretsmanager/secret_version.go",
            calls={
                "versionStages": "ListSecretVersionIds UpdateSecretVersionStage", "rotated": "UpdateSecretVersionStage",
            },
        ),
        # Another current version is another value.
        live=LiveState(
            "id", "the versions of the secret {secretId}",
            read=Read(
                "ListSecretVersionIds", {"SecretId": "{secretId}"},
                "Versions[?contains(VersionStages, 'AWSCURRENT')].{id: join('|', ['{secretId}', VersionId])} | [0]",
            ),
        ),
        in_reviews=inputs_in_reviews(planned="secretString", placed="secretId"),
    ),
    ResourceType(
        token="aws:kms/key:Key",
        replaced_by=input_names("customerMasterKeySpec customKeyStoreId keyUsage multiRegion xksKeyId"),
        own_policy=OwnPolicy("key", "description", "policy"),
    ),
    ResourceType(
        token="aws:secretsmanager/secretPolicy:SecretPolicy", replaced_by=input_names("secretArn"),
        own_policy=OwnPolicy("secret", "secretArn", "policy"),
        in_reviews=inputs_in_reviews(judged="policy secretArn"),
    ),
)  # fmt: skip
