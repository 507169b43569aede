# SPDX-License-Identifier: Apache-2.0
"""Image repositories and log groups."""

from collections.abc import Mapping

from localcloud.aws.plugin.rows import AwsRow, Change, Read, Tagging, words

_REPOSITORY = {"repositoryName": "{id}"}
_LOG_GROUP = {"logGroupName": "{id}"}

ROWS: Mapping[str, AwsRow] = {
    "aws:ecr/repository:Repository": AwsRow(
        service="ecr",
        inputs=words(
            "name imageTagMutability imageTagMutabilityExclusionFilters imageScanningConfiguration "
            "encryptionConfigurations forceDelete tags"
        ),
        outputs=words("arn registryId repositoryUrl tagsAll"),
        create="CreateRepository",
        created="repository",
        id="{name}",
        reads=(
            Read("DescribeRepositories", {"repositoryNames": ["{id}"]}, "repositories[0]"),
            Read("ListTagsForResource", {"resourceArn": "{repositoryArn}"}, "{tags: tags}"),
        ),
        delete="DeleteRepository",
        delete_with={**_REPOSITORY, "force": "{forceDelete}"},
        named="name",
        longest_name=256,
        extra=frozenset({"forceDelete"}),
        changes=(
            Change(
                "PutImageTagMutability",
                ("imageTagMutability", "imageTagMutabilityExclusionFilters"),
                _REPOSITORY,
                together=True,
            ),
            Change("PutImageScanningConfiguration", ("imageScanningConfiguration",), _REPOSITORY),
        ),
        renamed={"name": "repositoryName"},
        model_paths={"arn": "repositoryArn", "repositoryUrl": "repositoryUri", "name": "repositoryName"},
        unset={"imageTagMutability": "MUTABLE", "imageScanningConfiguration": {"scanOnPush": False}},
        tagging=Tagging(
            "TagResource", "UntagResource", {"resourceArn": "{repositoryArn}"}, keys="tagKeys", tags="tags"
        ),
        existing="registry: {{ existing: {} }}",
        taken_codes=frozenset({"RepositoryAlreadyExistsException"}),
        behaviour="access.NamedResource",
    ),
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": AwsRow(
        service="ecr",
        inputs=words("repository policy"),
        outputs=words("registryId"),
        create="PutLifecyclePolicy",
        id="{repository}",
        reads=(Read("GetLifecyclePolicy", _REPOSITORY, "@", frozenset({"LifecyclePolicyNotFoundException"})),),
        delete="DeleteLifecyclePolicy",
        delete_with=_REPOSITORY,
        changes=(Change("PutLifecyclePolicy", ("policy",), _REPOSITORY),),
        renamed={"repository": "repositoryName", "policy": "lifecyclePolicyText"},
    ),
    "aws:cloudwatch/logGroup:LogGroup": AwsRow(
        service="logs",
        inputs=words("name namePrefix kmsKeyId logGroupClass retentionInDays skipDestroy tags"),
        outputs=words("tagsAll"),
        create="CreateLogGroup",
        id="{name}",
        reads=(
            Read("DescribeLogGroups", {"logGroupNamePrefix": "{id}"}, "logGroups[?logGroupName=='{id}'] | [0]"),
            Read(
                "ListTagsForResource",
                {"resourceArn": "arn:aws:logs:{region}:{account}:log-group:{id}"},
                "{tags: tags}",
            ),
        ),
        delete="DeleteLogGroup",
        delete_with=_LOG_GROUP,
        named="name",
        longest_name=512,
        extra=frozenset({"skipDestroy"}),
        changes=(
            Change("PutRetentionPolicy", ("retentionInDays",), _LOG_GROUP, undo="DeleteRetentionPolicy"),
            Change("AssociateKmsKey", ("kmsKeyId",), _LOG_GROUP, undo="DisassociateKmsKey"),
        ),
        renamed={"name": "logGroupName"},
        computed={"arn": "arn:aws:logs:{region}:{account}:log-group:{name}"},
        tagging=Tagging(
            "TagResource",
            "UntagResource",
            {"resourceArn": "arn:aws:logs:{region}:{account}:log-group:{id}"},
            keys="tagKeys",
            tags="tags",
        ),
        existing="logs: {{ existing: {} }}",
        taken_codes=frozenset({"ResourceAlreadyExistsException"}),
        behaviour="access.NamedResource",
    ),
}
