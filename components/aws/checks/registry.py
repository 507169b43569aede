# SPDX-License-Identifier: Apache-2.0
"""The checks that are asked for stacks of AWS DL1 only."""

from __future__ import annotations

from schemas.checks.registry import CheckRules

RULES = CheckRules()
rule = RULES.rule
