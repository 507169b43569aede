# SPDX-License-Identifier: Apache-2.0
"""What every OCI component needs: the plan, and values that only OCI knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pulumi
import pulumi_oci as oci

from components.oci.plan import OciPlan
from components.oci.registry import registry_host
from components.oci.uses import Borrowed
from components.plan.naming import expand
from schemas.model import EnvValue, Secret

# Credentials of the `oci` provider. A provider for another region needs the same.
CREDENTIALS = ("auth", "configFileProfile", "fingerprint", "privateKeyPath", "tenancyOcid", "userOcid")
SECRET_CREDENTIALS = ("privateKey", "privateKeyPassword")


@dataclass(frozen=True)
class Context:
    """Bucket, registry and group may come from the stack under `uses`.

    Each output costs Pulumi a task or two, and a thousand runs need the same few. So each is made only once.
    """

    plan: OciPlan
    namespace: pulumi.Output[str]
    secret_ids: Mapping[str, pulumi.Output[str]]
    borrowed: Borrowed
    _filled: dict[str, pulumi.Input[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _together: dict[tuple[str, ...], pulumi.Output[dict[str, str]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

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
    def _answers(self) -> Mapping[str, pulumi.Output[str]]:
        return {
            "namespace": self.namespace,
            "registry": self.registry,
            "bucket": self.bucket_uri,
            **{f"secret.{name}": ocid for name, ocid in self.secret_ids.items()},
        }

    def fill(self, text: str) -> pulumi.Input[str]:
        """A text of the plan, with the remaining references filled in by OCI's values."""
        if text not in self._filled:
            self._filled[text] = self._fill(text)
        return self._filled[text]

    def _fill(self, text: str) -> pulumi.Input[str]:
        if "${" not in text:
            return text
        wanted = tuple(name for name in self._answers if f"${{{name}}}" in text)
        if wanted not in self._together:
            self._together[wanted] = pulumi.Output.all(**{name: self._answers[name] for name in wanted})
        return self._together[wanted].apply(lambda values: expand(text, values))

    def environment(self, values: Mapping[str, EnvValue]) -> dict[str, pulumi.Input[str]]:
        return {
            name: pulumi.Output.secret(value.value or "") if isinstance(value, Secret) else self.fill(value)
            for name, value in values.items()
        }

    def document(self, value: Mapping[str, Any]) -> pulumi.Input[str]:
        # Every node's document is different, so there is nothing to cache.
        return self._fill(json.dumps(value, sort_keys=True, separators=(",", ":")))


def namespace_of() -> pulumi.Output[str]:
    # Without a compartment, this call needs no permission. With one, it needs a large one.
    return oci.objectstorage.get_namespace_output().namespace


def credentials() -> dict[str, pulumi.Input[str]]:
    """The stack's own `oci:` settings, for a second provider."""
    config = pulumi.Config("oci")
    plain = {key: config.get(key) for key in CREDENTIALS}
    secret = {key: config.get_secret(key) for key in SECRET_CREDENTIALS}
    return {key: value for key, value in {**plain, **secret}.items() if value is not None}
