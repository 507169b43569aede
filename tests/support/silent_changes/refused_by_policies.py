# SPDX-License-Identifier: Apache-2.0
"""What the policy pack has to refuse, by the stack file or by the program. tests/support/policy_attempts.py has the
whole list, without a review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.silence import AWS, OCI, SilentChange

_POLICY = frozenset({"policy"})
_ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"
_WORLD = [f"{number}.0.0.0/8" for number in range(224)]
# Stack, what the resource does, its type, its inputs, and what the review says of it.
_ADDED: tuple[tuple[str, str, str, Mapping[str, Any], str], ...] = (
    (
        AWS, "an administrator", "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        {"role": "vision-prod-nodes", "policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"},
        "attaches AdministratorAccess",
    ),
    (
        AWS, "a bucket for all users", "aws:s3/bucketAcl:BucketAcl",
        {"bucket": "vision-prod-gaudi", "accessControlPolicy": {"grants": [{"grantee": {"uri": _ALL_USERS}}]}},
        "its list grants something to",
    ),
    (
        AWS, "the internet in parts", "aws:ec2/securityGroupRule:SecurityGroupRule",
        {"type": "ingress", "protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": _WORLD},
        "which together are the internet",
    ),
    (
        OCI, "a link to a whole bucket", "oci:ObjectStorage/preauthrequest:Preauthrequest",
        {"bucket": "vision-dev-training", "name": "share", "accessType": "AnyObjectRead"},
        "lets whoever has the link into the whole bucket",
    ),
)  # fmt: skip

CHANGES = (
    SilentChange(
        number=18,
        title="a reason in the tags of a stack file",
        change=lambda document: document["config"].update(
            {"trainyard:tags": {"wildcard-policies": "proof-of-concept"}}
        ),
        shows=("TY612", "`wildcard-policies` is a reason that policies believe"),
    ),
    *(
        SilentChange(
            number=19,
            title=title,
            stack=stack,
            program=f"pulumi.CustomResource({token!r}, 'more', {inputs!r})",
            shows=(shown,),
            trips=_POLICY,
        )
        for stack, title, token, inputs, shown in _ADDED
    ),
)
