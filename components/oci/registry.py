# SPDX-License-Identifier: Apache-2.0
"""The host of a region's image registry. Pure: `trainyard up` uses it without importing Pulumi."""

from __future__ import annotations

from catalog.tables import table


def registry_host(region: str) -> str:
    key = table("regions")["keys"].get(region)
    return f"{key}.ocir.io" if key else f"ocir.{region}.oci.oraclecloud.com"
