# SPDX-License-Identifier: Apache-2.0
"""Refuses calls that AWS refuses and moto accepts. It runs after the access check, and before moto.

| module | what it refuses | by |
| --- | --- | --- |
| values | values outside of their limits, unknown filters | botocore's models, rows `limits`, `values` and `text` |
| in_use | deletions of resources that are in use, names that are not yet free | rows `in_use` |
| documents | policies that are malformed, too long, or name missing principals | rows `document` |
| launches | values of launches and templates | itself |
| tags | tags that are given twice, and tags of AWS's own | rows `repeated` and `reserved` |
| network_values | protocols, ports, blocks of addresses, descriptions, zones of other regions | itself |
| objects | settings of S3, missing objects, uploads that belong to another key, keys that are not enabled | itself |

What a module refuses by itself has its code and message in a row `found`. The border (`localcloud/aws/border`) verifies
digests of contents.
"""

from __future__ import annotations

from catalog.tables import table
from components.aws.iam.decide import AwsPrincipal
from localcloud.aws.access.needs import call_resources
from localcloud.aws.aws_errors import Reason, RefusalError, aws_refusal
from localcloud.aws.calls import AwsCall
from localcloud.aws.refusals import documents, in_use, launches, network_values, objects, tags, values

# This operation does its own dry run (localcloud/aws/additions/launches.py).
_OWN_DRY_RUN = "ec2.RunInstances"


def refuse_by_aws_rules(call: AwsCall, caller: AwsPrincipal) -> None:
    """Refuses a call by AWS's rules. A dry run ends here, because moto ignores `DryRun` in some operations."""
    if call.service.prefix == "ec2" and call.name != _OWN_DRY_RUN and call.text("DryRun") == "true":
        raise aws_refusal("dry run")
    if why := table("aws_refusals")["lacking"].get(call.name):
        raise RefusalError(Reason.UNKNOWN_OPERATION, f"The local AWS does not implement {call.name}: {why}")
    values.refuse_values_outside_limits(call, caller)
    values.refuse_texts(call)
    tags.refuse_tags(call)
    in_use.refuse_deletion_in_use(call)
    documents.refuse_policy_documents(call)
    if call.service.prefix == "ec2":
        values.refuse_filters(call)
        launches.refuse_launch_values(call)
        network_values.refuse_network_values(call)
    if call.service.prefix == "s3":
        objects.refuse_foreign_uploads(call)
        objects.refuse_s3_call(call, caller)
    if call.service.prefix == "kms" and call.operation in table("aws_refusals")["enabled_key"]["operations"]:
        for arn in call_resources(call):
            objects.refuse_unusable_key(arn)
