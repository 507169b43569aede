# SPDX-License-Identifier: Apache-2.0
"""The resource types of the AWS table: a row for each type, by its name in `pulumi_aws`."""

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
