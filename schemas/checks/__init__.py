# SPDX-License-Identifier: Apache-2.0
"""Meaning checks: small functions, each with a code. They get a Stack and facts, and never fetch anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from catalog.platforms import Lacks, find_capability

# Importing a file of checks declares them.
from schemas.checks import (  # noqa: F401
    access_checks,
    bring_checks,
    command_checks,
    env_checks,
    image_checks,
    name_checks,
    network_checks,
    port_checks,
    role_checks,
    run_checks,
    script_checks,
    storage_checks,
    waiver_checks,
)
from schemas.facts import Facts
from schemas.findings import RULES, CheckRule, Finding
from schemas.model import Stack
from schemas.stack_file import StackChecks


def shared_rules() -> Mapping[str, CheckRule]:
    """The checks of every platform."""
    return RULES


def own_rules(platform: str) -> Mapping[str, CheckRule]:
    """The checks for stacks of this platform only."""
    own = find_capability(platform, StackChecks)
    return {} if isinstance(own, Lacks) else own.rules


def checks_of(platform: str) -> Iterator[CheckRule]:
    """The checks of every platform, and those of the named one."""
    yield from RULES.values()
    yield from own_rules(platform).values()


def check_meaning(stack: Stack, facts: Facts) -> Iterator[Finding]:
    """The findings about the meaning of a stack."""
    for rule in checks_of(stack.platform):
        for wrong in rule.check(stack, facts):
            yield Finding(rule.code, wrong.path, wrong.message, wrong.remedy, rule.severity)
