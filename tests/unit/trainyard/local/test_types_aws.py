# SPDX-License-Identifier: Apache-2.0
"""Readable names of AWS resources."""

from __future__ import annotations

from typing import Any

import pytest

from components.aws.local.stacks import LOCAL

ROWS: dict[str, dict[str, Any]] = {
    "bucket training": {"type": "aws:s3/bucket:Bucket", "inputs": {"bucket": "training"}},
    "settings of the bucket training": {
        "type": "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
        "inputs": {"bucket": "training"},
    },
    "object .trainyard/code/resnet.tar.gz in the bucket training": {
        "type": "aws:s3/bucketObjectv2:BucketObjectv2",
        "inputs": {"bucket": "training", "key": ".trainyard/code/resnet.tar.gz"},
    },
    "security group nodes": {"type": "aws:ec2/securityGroup:SecurityGroup", "inputs": {"name": "nodes"}},
    "VPC team": {"type": "aws:ec2/vpc:Vpc", "inputs": {"tags": {"Name": "team"}}},
}


@pytest.mark.parametrize("words", ROWS)
def test_a_resource_is_called_as_people_call_it(words: str) -> None:
    assert LOCAL.describe_resource({"urn": "urn::key", "id": "1", **ROWS[words]}) == words
