# SPDX-License-Identifier: Apache-2.0
"""Kills `trainyard up local --local` at a point that a seed chooses, runs `up` again, and compares the result.

The seed also chooses what is killed: all processes at once, the command alone, one of the processes that it started
(engine, language host, plugins, policy pack), or the cloud. The signal is SIGKILL.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil

from localcloud import control
from tests.support.local_team import Team
from tests.support.up_beside import kill, up_beside

VICTIMS = ("everything", "everything", "command", "one", "one", "one", "cloud")
# About the duration of an `up` on an idle machine. A sample uses this number, because measuring takes another `up`.
USUAL_SECONDS = 15.0
# The keys of a resource in Pulumi's state that must be the same after another `up`.
COMPARED = ("urn", "type", "parent", "protect", "retainOnDelete")


@dataclass(frozen=True)
class Reference:
    """An `up` that was not killed: how long it took, and what it left in the cloud and in Pulumi's state."""

    seconds: float
    cloud: Counter[tuple[str, str]]
    state: Counter[tuple[Any, ...]]


def undisturbed(root: Path) -> Reference:
    team = Team(root)
    try:
        start = time.monotonic()
        team.trainyard("up", "local")
        return Reference(time.monotonic() - start, Counter(team.in_cloud()), compared(team))
    finally:
        team.end()


def compared(team: Team) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(resource.get(name) for name in COMPARED) for resource in team.resources())


def kill_and_repeat(root: Path, seed: int, reference: Reference | None) -> str:
    """Returns what was killed and when. Raises AssertionError if the second `up` does not end in the state of the
    reference.

    Without a reference, it only checks that nothing exists twice, and that a preview has no changes.
    """
    team = Team(root)
    try:
        said = _killed(team, Random(seed), reference.seconds if reference else USUAL_SECONDS)
        again = team.attempt("up", "local")
        assert again.returncode == 0, f"{said}: {again.stdout}{again.stderr}"
        if reference:
            _is_the_same(team, reference, said)
        else:
            team.trainyard("preview", "local", "--expect-no-changes")
            assert max(Counter(team.in_cloud()).values()) == 1, f"{said}: {team.in_cloud()}"
        identifiers = Counter(one["id"] for one in team.resources() if one.get("id") and one["custom"])
        assert max(identifiers.values()) == 1, f"{said}: {identifiers.most_common(3)}"
        return said
    finally:
        team.end()


def _is_the_same(team: Team, reference: Reference, said: str) -> None:
    for found, wanted in ((Counter(team.in_cloud()), reference.cloud), (compared(team), reference.state)):
        assert found == wanted, f"{said}: too many {found - wanted}, missing {wanted - found}"


def _killed(team: Team, random: Random, seconds: float) -> str:
    """Starts `up`, waits for a while, kills, and waits until all other processes of `up` have ended."""
    moment, victim = random.uniform(0, seconds), random.choice(VICTIMS)
    with up_beside(team) as up:
        up.wait_at_most(moment)
        family = up.family()
        died = kill(_chosen(team, family, victim, random))
        up.end(family)
    return f"at {moment:.1f} s of {seconds:.1f}: {victim} ({', '.join(died) or 'it had ended'})"


def _chosen(team: Team, family: list[psutil.Process], victim: str, random: Random) -> list[psutil.Process]:
    chosen = {"everything": family, "command": family[:1], "one": family[1:] and [random.choice(family[1:])]}
    if victim in ("everything", "cloud") and (cloud := control.find_running_cloud(team.home / "cloud")):
        return [*chosen.get(victim, ()), psutil.Process(cloud.pid)]
    return chosen.get(victim, [])
