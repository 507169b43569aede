# SPDX-License-Identifier: Apache-2.0
"""The resource types of the AWS table: one row per type, by the names of `pulumi_aws`; one module per kind."""

from collections.abc import Mapping

from localcloud.aws.plugin.rows import AwsRow
from localcloud.aws.plugin.types import access, buckets, machines, network, registry, routes

ROWS: Mapping[str, AwsRow] = {
    **network.ROWS,
    **routes.ROWS,
    **machines.ROWS,
    **buckets.ROWS,
    **registry.ROWS,
    **access.ROWS,
}
