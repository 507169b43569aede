# SPDX-License-Identifier: Apache-2.0
"""Image repositories and log groups."""

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
from components.values.resource_types import (
    KeepsLess,
    KeptBy,
    LostWith,
    OwnPolicy,
    ResourceType,
    input_names,
    inputs_in_reviews,
)

_REPOSITORY = {"repositoryName": "{id}"}
_LOG_GROUP = {"logGroupName": "{id}"}
_LOG_GROUP_ARN = {"resourceArn": "arn:aws:logs:{region}:{account}:log-group:{id}"}


REGISTRY_TYPES = (
    aws_type(
        "aws:ecr/repository:Repository", "ecr",
        "name imageTagMutability imageTagMutabilityExclusionFilters imageScanningConfiguration "
        "encryptionConfigurations forceDelete tags",
        "arn registryId repositoryUrl", extra="forceDelete", named="name", longest_name=256,
        renamed={"name": "repositoryName"},
        model_paths={"arn": "repositoryArn", "repositoryUrl": "repositoryUri", "name": "repositoryName"},
        unset={
            "forceDelete": False, "imageTagMutability": "MUTABLE", "imageScanningConfiguration": {"scanOnPush": False},
        },
        replaced_by="encryptionConfigurations name",
        create=Creation("CreateRepository", "{name}", "repository"),
        reads=(
            Read("DescribeRepositories", {"repositoryNames": ["{id}"]}, "repositories[0]"),
            Read("ListTagsForResource", {"resourceArn": "{repositoryArn}"}, "{tags: tags}"),
        ),
        changes=(
            Change(
                "PutImageTagMutability", ("imageTagMutability", "imageTagMutabilityExclusionFilters"), _REPOSITORY,
                together=True,
            ),
            Change("PutImageScanningConfiguration", ("imageScanningConfiguration",), _REPOSITORY),
        ),
        delete=Deletion("DeleteRepository", {**_REPOSITORY, "force": "{forceDelete}"}),
        tagging=Tagging(
            "TagResource", "UntagResource", {"resourceArn": "{repositoryArn}"}, keys="tagKeys", tags="tags",
        ),
        taken_codes="RepositoryAlreadyExistsException", existing="registry: {{ existing: {} }}",
        behaviour="access.NamedResource",
        provider=RealProvider("ecr/repository.go"),
        lost=LostWith(
            "the repository {name} goes with every image in it, which jobs may still name",
            "keep it (`keep: true`), or name it as `registry: { existing: … }`; push the images elsewhere first",
            ("name",),
        ),
        arns={"ecr": "arn:aws:ecr:{region}:{account}:repository/{id}"}, part="repository",
        immutable_by=KeptBy(
            "imageTagMutability", ("IMMUTABLE", "IMMUTABLE_WITH_EXCLUSION"), "imageTagMutabilityExclusionFilters",
        ),
        image_host=r"(?P<owner>\d{12})\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(\.cn)?",
        live=LiveState(
            "imageTagMutability", "the repository {id}", policy_type="aws:ecr/repositoryPolicy:RepositoryPolicy",
            policy=Read("GetRepositoryPolicy", _REPOSITORY, "policyText"),
        ),
        in_reviews=inputs_in_reviews(
            placed="encryptionConfigurations forceDelete imageScanningConfiguration imageTagMutability name",
        ),
    ),
    aws_type(
        "aws:cloudwatch/logGroup:LogGroup", "logs",
        "name namePrefix kmsKeyId logGroupClass retentionInDays skipDestroy tags", extra="skipDestroy", named="name",
        longest_name=512, renamed={"name": "logGroupName"},
        computed_outputs={"arn": "arn:aws:logs:{region}:{account}:log-group:{name}"},
        replaced_by="logGroupClass name namePrefix", computed="logGroupClass",
        create=Creation("CreateLogGroup", "{name}"),
        reads=(
            Read("DescribeLogGroups", {"logGroupNamePrefix": "{id}"}, "logGroups[?logGroupName=='{id}'] | [0]"),
            # since 5.57
            Read(
                "ListTagsForResource", _LOG_GROUP_ARN, "{tags: tags}",
            ),
        ),
        changes=(
            Change(
                "PutRetentionPolicy", ("retentionInDays",), _LOG_GROUP, undo="DeleteRetentionPolicy",
                undo_only_for="noRetention",
            ),
            Change("AssociateKmsKey", ("kmsKeyId",), _LOG_GROUP, undo="DisassociateKmsKey"),
        ),
        delete=Deletion("DeleteLogGroup", _LOG_GROUP),
        tagging=Tagging("TagResource", "UntagResource", _LOG_GROUP_ARN, keys="tagKeys", tags="tags"),
        taken_codes="ResourceAlreadyExistsException", existing="logs: {{ existing: {} }}",
        behaviour="access.NamedResource",
        provider=RealProvider(
            "logs/group.go",
            before={"read": "ListTagsLogGroup", "tags": "TagLogGroup UntagLogGroup"},
        ),
        lost=LostWith(
            "the log group {name} goes with every line that runs have written",
            "read what is needed first (`trainyard runs`)", ("name",),
        ),
        arns={"logs": "arn:aws:logs:{region}:{account}:log-group:{id}:*"},
        live=LiveState("retentionInDays", "the log groups"),
        in_reviews=inputs_in_reviews(judged="retentionInDays", placed="kmsKeyId name"),
        keeps_less=(
            KeepsLess(
                "retentionInDays", "log entries older than {after} are deleted, which were kept for {before}",
                "read what is needed first (`trainyard runs`)",
            ),
        ),
        harmless="policies say who reads its logs",
    ),
    aws_type(
        "aws:ecr/lifecyclePolicy:LifecyclePolicy", "ecr", "repository policy", "registryId",
        renamed={"repository": "repositoryName", "policy": "lifecyclePolicyText"},
        replaced_by="policy repository",
        create=Creation("PutLifecyclePolicy", "{repository}"),
        reads=(Read("GetLifecyclePolicy", _REPOSITORY, "@", "LifecyclePolicyNotFoundException"),),
        changes=(Change("PutLifecyclePolicy", ("policy",), _REPOSITORY),),
        delete=Deletion("DeleteLifecyclePolicy", _REPOSITORY),
        provider=RealProvider("ecr/lifecycle_policy.go"),
        in_reviews=inputs_in_reviews(placed="repository", initial="policy"),
        harmless="it only removes images",
    ),
    ResourceType(
        token="aws:ecr/repositoryPolicy:RepositoryPolicy", replaced_by=input_names("repository"),
        own_policy=OwnPolicy("repository", "repository", "policy"),
        in_reviews=inputs_in_reviews(judged="policy repository"),
    ),
)  # fmt: skip
