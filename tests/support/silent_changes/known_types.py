# SPDX-License-Identifier: Apache-2.0
"""Resources of types that only a row leads to: the stack's own program makes none."""

from __future__ import annotations

from tests.support.silence import AWS, SilentChange

_SSH = "[{'protocol': 'tcp', 'from_port': 22, 'to_port': 22, 'cidr_blocks': ['0.0.0.0/0']}]"

CHANGES = (
    SilentChange(
        number=27,
        title="a default group is opened",
        stack=AWS,
        program=f"import pulumi_aws as aws\naws.ec2.DefaultSecurityGroup('theirs', ingress={_SSH})",
        shows=("opens: TCP 22 into the security group `theirs`, from anywhere (0.0.0.0/0)",),
        trips=frozenset({"exposure"}),
    ),
)
