# SPDX-License-Identifier: Apache-2.0
"""Fills a new account: with AWS's managed policies, and with users and their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping

from localcloud.aws.account import ACCOUNT, PEOPLE, AccessKeyPair

# The managed policies that are usually attached to machines and users. All of them are over a thousand, and would be
# written to disk with every change of IAM.
MANAGED = (
    "AdministratorAccess", "PowerUserAccess", "ReadOnlyAccess", "AmazonSSMManagedInstanceCore",
    "AmazonSSMFullAccess", "AmazonS3FullAccess", "AmazonS3ReadOnlyAccess", "AmazonEC2ContainerRegistryPowerUser",
    "AmazonEC2ContainerRegistryPullOnly", "AmazonEC2ContainerRegistryReadOnly", "AmazonEC2FullAccess",
    "AmazonEC2ReadOnlyAccess",
    "CloudWatchAgentServerPolicy", "CloudWatchLogsFullAccess", "CloudWatchReadOnlyAccess", "IAMFullAccess",
)  # fmt: skip


def managed_policies() -> None:
    """Adds AWS's managed policies from moto's data."""
    from moto.iam.aws_managed_policies import aws_managed_policies_data
    from moto.iam.models import AWSManagedPolicy, iam_backends

    backend = iam_backends[ACCOUNT]["aws"]
    data = json.loads(aws_managed_policies_data)
    for name in MANAGED:
        policy = AWSManagedPolicy.from_data(name, ACCOUNT, "aws", data[name])
        if policy.arn not in backend.managed_policies:
            backend.managed_policies[policy.arn] = policy
            backend.aws_managed_policies.append(policy)


def people(keys: Mapping[str, AccessKeyPair]) -> None:
    """Adds the users and their groups, unless they exist."""
    from moto.iam.models import iam_backends

    backend = iam_backends[ACCOUNT]["aws"]
    for person in PEOPLE:
        if person.profile in backend.users:
            continue
        backend.create_user("aws", person.profile, "/")
        if person.group not in backend.groups:
            backend.create_group(person.group, "/")
        backend.add_user_to_group(person.group, person.profile)
        for policy in person.managed:
            backend.attach_group_policy(policy, person.group)
        key = backend.create_access_key(person.profile)
        del backend.access_keys[key.physical_resource_id]
        key.access_key_id, key.secret_access_key = keys[person.profile].id, keys[person.profile].secret
        backend.access_keys[key.physical_resource_id] = key
