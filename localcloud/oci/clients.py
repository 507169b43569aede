# SPDX-License-Identifier: Apache-2.0
"""How clients of OCI come to a local cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from localcloud.clients import PlatformClients
from localcloud.oci.sdk import oci_client_variables, provider_clients

if TYPE_CHECKING:
    from localcloud.control import Cloud


class OciClients(PlatformClients):
    def variables(self, cloud: Cloud, profile: str) -> Mapping[str, str]:
        return {
            "OCI_CONFIG_FILE": str(cloud.config_file),
            "OCI_CONFIG_PROFILE": profile,
            "OCI_CLI_CONFIG_FILE": str(cloud.config_file),
            "OCI_CLI_PROFILE": profile,
            **oci_client_variables(cloud.endpoint, more=provider_clients()),
        }

    def profile_of_caller(self, cloud: Cloud, environment: Mapping[str, str]) -> str | None:
        ours = environment.get("OCI_CONFIG_FILE") == str(cloud.config_file)
        return environment.get("OCI_CONFIG_PROFILE") if ours else None

    def place(self, cloud: Cloud) -> str:
        return f"OCI: region {cloud.region}, compartment {cloud.compartment}"


CLIENTS = OciClients()
