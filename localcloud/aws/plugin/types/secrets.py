# SPDX-License-Identifier: Apache-2.0
"""Secrets and their versions."""

from collections.abc import Mapping

from localcloud.aws.plugin.rows import AwsRow, Change, Read, Tagging, words

_SECRET = {"SecretId": "{id}"}

ROWS: Mapping[str, AwsRow] = {
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
        taken=frozenset({"ResourceExistsException", "InvalidRequestException"}),
        behaviour="secrets.SecretResource",
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
        behaviour="secrets.VersionResource",
    ),
}
