# SPDX-License-Identifier: Apache-2.0
"""Log groups and logs."""

from components.oci.types.oci_resource_type import oci_type
from components.values.resource_types import KeepsLess, LostWith, inputs_in_reviews

LOGGING_TYPES = (
    oci_type(
        "oci:Logging/logGroup:LogGroup", computed="definedTags description freeformTags",
        lost=LostWith(
            "the log group {name} goes with its logs",
            "name it as `logs: { existing: … }`, or read what is needed first (`trainyard runs`)", ("displayName",),
        ),
        # The work request must name the group with the action CREATED, UPDATED or, of a move, RELATED. One that fails
        # is deleted.
        entity="loggroup", unreached={"a failure": "DeleteWorkRequest ListWorkRequestErrors"},
        existing="logs: {{ existing: {{ group: {} }} }}", compared="", statement_types="logging-family",
        in_reviews=inputs_in_reviews(placed="compartmentId"),
        harmless="statements say who reads its logs",
    ),
    oci_type(
        "oci:Logging/log:Log",
        replaced_by=(
            "logType configuration.source.category configuration.source.resource configuration.source.service "
            "configuration.source.sourceType configuration.compartmentId"
        ),
        computed="configuration definedTags freeformTags isEnabled retentionDuration",
        lost=LostWith(
            "the log {name} goes with every line that runs have written",
            "read what is needed first (`trainyard runs`)", ("displayName",),
        ),
        entity="log", delete="DeleteLog GetWorkRequest GetLog",
        changed={"logGroupId": "ChangeLogLogGroup UpdateLog GetWorkRequest GetLog"},
        unreached={"a failure": "DeleteWorkRequest ListWorkRequestErrors"}, within="logGroupId",
        existing="logs: {{ existing: {{ group: GROUP, log: {} }} }}", behaviour="jobs.LogResource",
        compared="isEnabled retentionDuration",
        keeps_less=(
            KeepsLess(
                "retentionDuration", "log entries older than {after} are deleted, which were kept for {before}",
                "read what is needed first (`trainyard runs`)", without=30,
            ),
        ),
        in_reviews=inputs_in_reviews(
            judged="retentionDuration", placed="configuration isEnabled logGroupId logType",
        ),
        harmless="statements say who reads it",
    ),
)  # fmt: skip
