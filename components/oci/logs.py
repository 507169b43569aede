# SPDX-License-Identifier: Apache-2.0
"""The log group and log that runs write to, and the flow log of their subnet. Destroy deletes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_oci as oci

from components.oci.plan import OciLogsPlan, OciPlan


@dataclass(frozen=True)
class LogsArgs:
    plan: OciLogsPlan
    compartment: str
    tags: Mapping[str, str]


class Logs(pulumi.ComponentResource):
    """One log; in a group of its own, or in one that exists."""

    group_id: pulumi.Output[str]
    log_id: pulumi.Output[str]

    def __init__(self, name: str, args: LogsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:oci:Logs", name, None, opts)
        inside = pulumi.ResourceOptions(parent=self)
        self.group_id = self._group(args, inside)
        log = oci.logging.Log(
            "log",
            log_group_id=self.group_id,
            display_name=args.plan.log_name,
            log_type="CUSTOM",
            is_enabled=True,
            retention_duration=args.plan.retention_days,
            freeform_tags=dict(args.tags),
            opts=inside,
        )
        self.log_id = log.id
        self.register_outputs({"group_id": self.group_id, "log_id": self.log_id})

    def _group(self, args: LogsArgs, inside: pulumi.ResourceOptions) -> pulumi.Output[str]:
        if args.plan.group:
            return pulumi.Output.from_input(args.plan.group)
        return oci.logging.LogGroup(
            "log-group",
            compartment_id=args.compartment,
            display_name=args.plan.group_name,
            freeform_tags=dict(args.tags),
            opts=inside,
        ).id


def make_flow_log(plan: OciPlan, group: pulumi.Input[str], subnet: pulumi.Input[str]) -> oci.logging.Log:
    """Records what the rules of the subnet let through and refuse. OCI writes it, so nobody else needs access to it."""
    source = oci.logging.LogConfigurationSourceArgs(
        source_type="OCISERVICE", service="flowlogs", category="all", resource=subnet
    )
    return oci.logging.Log(
        "flow-log",
        log_group_id=group,
        display_name=plan.network.flow_log,
        log_type="SERVICE",
        configuration=oci.logging.LogConfigurationArgs(source=source),
        is_enabled=True,
        retention_duration=plan.logs.retention_days,
        freeform_tags=dict(plan.tags),
    )
