# SPDX-License-Identifier: Apache-2.0
"""Resources with data: the bucket, the image repository, and secrets in a vault.

Bucket and repository are protected, and survive the stack, unless its file says otherwise.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_oci as oci

from components.oci.plan import OciLogsPlan, OciPlan, VaultPlan
from components.plan.model import BucketPlan, RegistryPlan

# The value in the stack file -> OCI's.
VERSIONING: Mapping[bool | str, str] = {True: "Enabled", False: "Disabled", "suspended": "Suspended"}


@dataclass(frozen=True)
class StorageArgs:
    bucket: BucketPlan
    registry: RegistryPlan
    vault: VaultPlan | None
    compartment: str
    namespace: pulumi.Output[str]
    prefix: str
    tags: Mapping[str, str]
    # The bucket depends on the policy that allows Object Storage to use the team's own key.
    key_access: tuple[pulumi.Resource, ...] = ()


class Storage(pulumi.ComponentResource):
    """The bucket, repository and secrets that a stack makes."""

    bucket: pulumi.Resource | None = None
    repository: pulumi.Resource | None = None
    secret_ids: Mapping[str, pulumi.Output[str]]

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:oci:Storage", name, None, opts)
        shared = {"compartment_id": args.compartment, "freeform_tags": dict(args.tags)}
        if args.bucket.create:
            self.bucket = oci.objectstorage.Bucket(
                "bucket",
                name=args.bucket.name,
                namespace=args.namespace,
                access_type="NoPublicAccess",
                versioning=VERSIONING[args.bucket.versioning],
                kms_key_id=args.bucket.key,
                opts=pulumi.ResourceOptions.merge(
                    self._kept(args.bucket.keep), pulumi.ResourceOptions(depends_on=args.key_access)
                ),
                **shared,
            )
        if args.registry.create:
            self.repository = oci.artifacts.ContainerRepository(
                "repository",
                display_name=args.registry.repository,
                is_public=False,
                is_immutable=args.registry.immutable,
                opts=self._kept(args.registry.keep),
                **shared,
            )
        self.secret_ids = self._secrets(args, args.vault) if args.vault else {}
        self.register_outputs({})

    def _kept(self, keep: bool) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, protect=keep, retain_on_delete=keep)

    def _secrets(self, args: StorageArgs, vault: VaultPlan) -> dict[str, pulumi.Output[str]]:
        return {
            key: oci.vault.Secret(
                f"secret-{key}",
                compartment_id=args.compartment,
                vault_id=vault.vault,
                key_id=vault.key,
                secret_name=f"{args.prefix}-{key}",
                secret_content={
                    "content_type": "BASE64",
                    "content": pulumi.Output.secret(b64encode((secret.value or "").encode()).decode()),
                },
                freeform_tags=dict(args.tags),
                opts=pulumi.ResourceOptions(parent=self),
            ).id
            for key, secret in vault.secrets.items()
        }


@dataclass(frozen=True)
class LogsArgs:
    plan: OciLogsPlan
    compartment: str
    tags: Mapping[str, str]


class Logs(pulumi.ComponentResource):
    """One log, in a new log group or in an existing one."""

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
    """A flow log, which records what the rules of the subnet allow and refuse. OCI itself writes it, so no access is
    needed."""
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
