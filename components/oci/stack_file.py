# SPDX-License-Identifier: Apache-2.0
"""What a stack file may say for OCI only: its keys, and the checks of what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from catalog.tables import table
from components.oci.stack import OciStack

if TYPE_CHECKING:
    from schemas.checks.registry import CheckRule


class OciStackFile:
    stack = OciStack

    def rules(self) -> Mapping[str, CheckRule]:
        import components.oci.checks  # noqa: F401  # declares them
        from components.oci.checks.registry import RULES

        return RULES

    def facts(self) -> Mapping[str, Any]:
        regions = table("regions")
        return {"shapes": table("shapes"), "regions": regions["keys"], "realms": regions["realms"]}


STACK_FILE = OciStackFile()
