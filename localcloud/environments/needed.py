# SPDX-License-Identifier: Apache-2.0
"""The environments that have to be made before a job can run here, their cost, and what this machine lacks for them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localcloud.environments import debian, unpacked
from localcloud.environments.find import Environment, MissingEnvironment, find, locate, missing_packages
from localcloud.environments.rows import EnvironmentRow, rows


@dataclass(frozen=True)
class Obstacle:
    """Why an environment cannot be made on this machine, and the command that changes that."""

    name: str
    reason: str
    remedy: str


def rows_to_make(names: Iterable[str]) -> tuple[EnvironmentRow, ...]:
    """The environments of these names that do not exist, each after the one that it builds on."""
    ordered: dict[str, EnvironmentRow] = {}
    for name in names:
        row = rows()[name]
        for one in (*((rows()[row.base],) if row.base in rows() else ()), row):
            if not isinstance(find(one.name), Environment):
                ordered[one.name] = one
    return tuple(ordered.values())


def cost(made: Sequence[EnvironmentRow]) -> str:
    """`ray (330 MB, 1 min), tensorflow (1200 MB, 1 min)`, and their sum if there are several."""
    each = ", ".join(f"{row.name} ({row.megabytes} MB, {row.minutes} min)" for row in made)
    megabytes, minutes = sum(row.megabytes for row in made), sum(row.minutes for row in made)
    return f"{each}: {megabytes} MB, about {minutes} minutes" if len(made) > 1 else each


def obstacle(row: EnvironmentRow) -> Obstacle | None:
    """Why this machine cannot make an environment; None if it can."""
    if row.base in rows() and (below := obstacle(rows()[row.base])):
        return Obstacle(row.name, below.reason, below.remedy)
    if isinstance(find(row.name), Environment):
        return None
    if absent := missing_packages(row):
        reason = f"it needs Debian packages that are not installed: {', '.join(absent)}"
        return Obstacle(row.name, reason, packages_command((row.name,), absent))
    if unfinished := debian.unfinished(row.packages):
        return Obstacle(row.name, *debian.unfinished_words(unfinished))
    if row.kind == "debian" and (reason := unpacked.obstacle(row)):
        return Obstacle(row.name, reason, unpacked.own_packages(row))
    if row.kind == "this":
        missing = find(row.name)
        assert isinstance(missing, MissingEnvironment)
        return Obstacle(row.name, missing.reason, missing.remedy)
    place = None if row.base in rows() else locate(row)
    return Obstacle(row.name, place.reason, place.remedy) if isinstance(place, MissingEnvironment) else None


def packages_command(names: Sequence[str], absent: Sequence[str]) -> str:
    """The command that installs Debian packages: for root ours, which also fetches package lists; else apt with
    sudo."""
    if debian.may_install():
        return f"trainyard environments make --apt {' '.join(names)}"
    return f"{'' if os.geteuid() == 0 else 'sudo '}{debian.command_words(absent)}"
