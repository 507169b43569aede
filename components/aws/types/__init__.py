# SPDX-License-Identifier: Apache-2.0
"""What is known of the resource types of Pulumi's provider `aws`: one row each."""

from components.aws.types.access import ACCESS_TYPES
from components.aws.types.aws_resource_type import AwsResourceType
from components.aws.types.buckets import BUCKETS_TYPES
from components.aws.types.gateways import GATEWAYS_TYPES
from components.aws.types.machines import CAPACITY_TYPES, MACHINES_TYPES
from components.aws.types.network import NETWORK_TYPES
from components.aws.types.registry import REGISTRY_TYPES
from components.aws.types.resource_policies import RESOURCE_POLICY_TYPES
from components.aws.types.routes import ROUTES_TYPES
from components.aws.types.secrets import SECRET_TYPES
from components.aws.types.security_groups import SECURITY_GROUP_TYPES
from components.values.resource_types import by_token

RESOURCE_TYPES = by_token(
    ACCESS_TYPES,
    BUCKETS_TYPES,
    NETWORK_TYPES,
    SECURITY_GROUP_TYPES,
    ROUTES_TYPES,
    MACHINES_TYPES,
    GATEWAYS_TYPES,
    CAPACITY_TYPES,
    REGISTRY_TYPES,
    SECRET_TYPES,
    RESOURCE_POLICY_TYPES,
)
# Those that the local plugin serves, and whose calls are known.
SERVED_TYPES = {token: row for token, row in RESOURCE_TYPES.items() if isinstance(row, AwsResourceType)}
