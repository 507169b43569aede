# SPDX-License-Identifier: Apache-2.0
"""Refuses calls that AWS refuses and moto accepts. Called after the judge has allowed a call, and before moto.

| module | what it refuses | by |
| --- | --- | --- |
| values | values outside of their limits | botocore's models, rows `limits` and `values` |
| in_use | deletions of resources that are in use | rows `in_use` |
| documents | policies that are malformed, too long, or name missing principals | rows `document` |
| launches | values of launches and templates | itself |
| filters | filters that an operation does not have | botocore's models |
| objects | settings of S3, requests about missing objects, uploads of another key than the judged one | itself |

The border (localcloud/aws/border) verifies digests of contents.
"""

from __future__ import annotations

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal
from localcloud.aws.calls import AwsCall
from localcloud.aws.errors import Reason, RefusalError
from localcloud.aws.refusals import documents, in_use, launches, objects, values

# This operation has checks of its own for a dry run (localcloud/aws/additions/launches.py).
_JUDGED_DRY = "ec2.RunInstances"


def refuse(call: AwsCall, caller: AwsPrincipal) -> None:
    """Raises AWS's refusal. A dry run ends here, because moto ignores `DryRun` in some operations."""
    if call.service.prefix == "ec2" and call.name != _JUDGED_DRY and call.text("DryRun") == "true":
        message = "Request would have succeeded, but DryRun flag is set."
        raise RefusalError(Reason.REFUSED, message, "DryRunOperation", 412)
    if why := table("aws_refusals")["lacking"].get(call.name):
        raise RefusalError(Reason.UNKNOWN_OPERATION, f"The local AWS does not implement {call.name}: {why}")
    values.refuse(call, caller)
    in_use.refuse(call)
    documents.refuse(call)
    if call.service.prefix == "ec2":
        values.refuse_filters(call)
        launches.refuse(call)
    if call.service.prefix == "s3":
        objects.refuse_foreign_uploads(call)
        objects.refuse(call, caller)
