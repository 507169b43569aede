# SPDX-License-Identifier: Apache-2.0
"""Access to paper."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.platform import AccessReporting


@dataclass(frozen=True, slots=True)
class Report:
    stack: str

    def text(self) -> str:
        return f"{self.stack}: whoever has a pencil may draw"


ACCESS_REPORTING = AccessReporting(lambda plan, deployers: Report(plan.stack))
