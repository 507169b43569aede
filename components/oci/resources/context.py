# SPDX-License-Identifier: Apache-2.0
"""What every OCI component needs: the plan, values that only OCI knows, and the packages of pulumi_oci. Their modules
are imported on first use only: `core` has 240, `identity` 200 more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pulumi
import pulumi_oci
import pulumi_oci as oci

from components import lazy_sdk
from components.oci.plan import OciPlan, registry_host
from components.outputs import Borrowed
from components.runs import Filler

# Credentials of the `oci` provider. A provider for another region needs the same.
CREDENTIALS = ("auth", "configFileProfile", "fingerprint", "privateKeyPath", "tenancyOcid", "userOcid")
SECRET_CREDENTIALS = ("privateKey", "privateKeyPassword")
PACKAGES = ("artifacts", "core", "datascience", "identity", "logging", "objectstorage", "vault")


@dataclass(frozen=True)
class Context(Filler):
    """Bucket, registry and group may come from the stack under `uses`."""

    plan: OciPlan
    namespace: pulumi.Output[str]
    secret_ids: Mapping[str, pulumi.Output[str]]
    borrowed: Borrowed

    @cached_property
    def registry(self) -> pulumi.Output[str]:
        """Where images are pushed: host, namespace and repository."""
        host, repository = registry_host(self.plan.region), self.plan.registry.repository
        own = self.namespace.apply(lambda namespace: f"{host}/{namespace}/{repository}")
        return self.borrowed.get("registry", "imagePushAddress") or own

    @cached_property
    def bucket(self) -> pulumi.Output[str]:
        return self.borrowed.get("bucket", "bucket") or pulumi.Output.from_input(self.plan.bucket.name)

    @cached_property
    def bucket_uri(self) -> pulumi.Output[str]:
        return pulumi.Output.concat("oci://", self.bucket, "@", self.namespace)

    @cached_property
    def runs_group(self) -> pulumi.Output[str]:
        return self.borrowed.get("access", "runsGroup") or pulumi.Output.from_input(self.plan.access.runs_group)

    @cached_property
    def answers(self) -> Mapping[str, pulumi.Output[str]]:
        return {
            "namespace": self.namespace,
            "registry": self.registry,
            "bucket": self.bucket_uri,
            **{f"secret.{name}": ocid for name, ocid in self.secret_ids.items()},
        }


def namespace_output() -> pulumi.Output[str]:
    # Without a compartment, this call needs no permission. With one, it needs a wide one.
    return oci.objectstorage.get_namespace_output().namespace


def provider_credentials() -> dict[str, pulumi.Input[str]]:
    """The stack's own `oci:` settings, for a second provider."""
    config = pulumi.Config("oci")
    plain = {key: config.get(key) for key in CREDENTIALS}
    secret = {key: config.get_secret(key) for key in SECRET_CREDENTIALS}
    return {key: value for key, value in {**plain, **secret}.items() if value is not None}


def make_oci_sdk_lazy() -> None:
    """Replaces packages that are not imported yet with lazy ones."""
    lazy_sdk.make_packages_lazy(pulumi_oci, PACKAGES)


def look_up_in_oci(package: str, function: str, **arguments: Any) -> Mapping[str, Any]:
    """The result of a function of the provider, with OCI's names."""
    return lazy_sdk.invoke_lookup(pulumi_oci, f"oci:{package}/{function}:{function}", **arguments)
