# SPDX-License-Identifier: Apache-2.0
"""The packages of pulumi_oci that a stack uses, imported leanly. `core` has 240 modules, `identity` 200 more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi_oci

from components import lean

PACKAGES = ("artifacts", "core", "datascience", "identity", "logging", "objectstorage", "vault")


def make_lean() -> None:
    """Replaces packages that are not imported yet with lean ones."""
    lean.make_lean(pulumi_oci, PACKAGES)


def lookup(package: str, function: str, **arguments: Any) -> Mapping[str, Any]:
    """The result of a function of the provider, with OCI's names."""
    return lean.lookup(pulumi_oci, f"oci:{package}/{function}:{function}", **arguments)
