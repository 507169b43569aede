# SPDX-License-Identifier: Apache-2.0
"""The Pulumi provider `aws` for the local cloud."""

from collections.abc import Iterable

from components.aws.types import SERVED_TYPES
from components.aws.types.aws_resource_type import AwsResourceType
from components.platform.calls import InputFailure
from components.platform.values import Properties
from localcloud.aws.plugin import functions
from localcloud.aws.plugin.session import AwsSession
from localcloud.aws.plugin.table import AwsResource
from localcloud.plugins.plugin import LocalPlugin
from provider.base.resource import CheckedInputs, Function

_CONFIG = frozenset({"region", "profile", "defaultTags"})
# Settings of the real provider that are accepted and have no effect.
_IRRELEVANT = frozenset({"version", "pluginDownloadURL", "maxRetries", "s3UsePathStyle"})


class LocalAws(LocalPlugin[AwsResourceType, AwsSession]):
    name = "aws"
    # The version of pulumi-aws with the same types. The engine compares it with the version that a program needs.
    version = "7.51.1"
    rows = SERVED_TYPES
    base = AwsResource
    behaviours = "localcloud.aws.plugin.behaviours"

    def check_config(self, config: Properties) -> CheckedInputs:
        unknown = [key for key in sorted(config) if key not in _CONFIG | _IRRELEVANT and not key.startswith("skip")]
        reason = "The `aws` plugin of the local cloud does not support this setting. It supports region, profile and "
        return CheckedInputs(config, tuple(InputFailure(key, f"{reason}defaultTags.") for key in unknown))

    def open_session(self, config: Properties) -> AwsSession:
        return AwsSession.of(config)

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        return ("region",)

    def function(self, token: str) -> Function | None:
        return functions.aws_function_of(token, self.session)
