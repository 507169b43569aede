# SPDX-License-Identifier: Apache-2.0
"""Log groups and logs."""

from components.values.resource_types import LostWith, ResourceType, input_names

LOGGING_TYPES = (
    ResourceType(
        token="oci:Logging/logGroup:LogGroup",
        tags="freeformTags",
        computed=input_names("definedTags description freeformTags"),
        lost=LostWith(
            "the log group {name} goes with its logs",
            "name it as `logs: { existing: … }`, or read what is needed first (`trainyard runs`)",
            ("displayName",),
        ),
    ),
    ResourceType(
        token="oci:Logging/log:Log",
        tags="freeformTags",
        replaced_by=input_names(
            "logType configuration.source.category configuration.source.resource configuration.source.service "
            "configuration.source.sourceType configuration.compartmentId"
        ),
        computed=input_names("configuration definedTags freeformTags isEnabled retentionDuration"),
        lost=LostWith(
            "the log {name} goes with every line that runs have written",
            "read what is needed first (`trainyard runs`)",
            ("displayName",),
        ),
    ),
)
