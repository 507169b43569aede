# SPDX-License-Identifier: Apache-2.0
"""Policies of resources that no stack of ours makes: programs of teams may, and each can let in strangers."""

from components.values.resource_types import OwnPolicy, ResourceType, input_names

# What the policy is of, the input that names it.
_POLICIES = {
    "aws:ecr/registryPolicy:RegistryPolicy": ("registry", ""),
    "aws:efs/fileSystemPolicy:FileSystemPolicy": ("file system", "fileSystemId"),
    "aws:kms/keyPolicy:KeyPolicy": ("key", "keyId"),
    "aws:s3/accessPoint:AccessPoint": ("access point", "name"),
    "aws:s3/vectorsVectorBucketPolicy:VectorsVectorBucketPolicy": ("vector bucket", "vectorBucketArn"),
    "aws:s3control/accessPointPolicy:AccessPointPolicy": ("access point", "accessPointArn"),
    "aws:sns/topicPolicy:TopicPolicy": ("topic", "arn"),
    "aws:sqs/queuePolicy:QueuePolicy": ("queue", "queueUrl"),
}

RESOURCE_POLICY_TYPES = tuple(
    ResourceType(token=token, replaced_by=input_names(named_by), own_policy=OwnPolicy(what, named_by, "policy"))
    for token, (what, named_by) in _POLICIES.items()
)
