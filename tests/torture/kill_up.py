# SPDX-License-Identifier: Apache-2.0
"""`trainyard up local --local` killed somewhere, by a seed, and what must be true after another `up`.

Who dies is drawn too: all of it at once, the command alone, one of the processes it started (engine, language host,
plugins, policy pack), or the cloud. Nothing is told to end first: the signal is SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil

from localcloud import control
from tests.flows.local_team import LONGEST_SECONDS, ROOT, Team

VICTIMS = ("everything", "everything", "command", "one", "one", "one", "cloud")
# Of a resource in Pulumi's state, what another run of the same program must bring about again.
COMPARED = ("urn", "type", "parent", "protect", "retainOnDelete")


@dataclass(frozen=True)
class Reference:
    """An `up` that nobody disturbed: how long it took, what it left in the cloud and in Pulumi's state."""

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


def kill_and_repeat(root: Path, seed: int, reference: Reference) -> str:
    """What died and when; raises AssertionError when the second `up` does not end where the reference did."""
    team = Team(root)
    try:
        said = _killed(team, Random(seed), reference.seconds)
        again = team.attempt("up", "local")
        assert again.returncode == 0, f"{said}: {again.stdout}{again.stderr}"
        doubled = Counter(team.in_cloud())
        assert doubled == reference.cloud, (
            f"{said}: too many {doubled - reference.cloud}, missing {reference.cloud - doubled}"
        )
        assert compared(team) == reference.state, said
        identifiers = Counter(one["id"] for one in team.resources() if one.get("id") and one["custom"])
        assert max(identifiers.values()) == 1, f"{said}: {identifiers.most_common(3)}"
        return said
    finally:
        team.end()


def _killed(team: Team, random: Random, seconds: float) -> str:
    """Starts `up`, lets it live for a while, kills, and waits until the rest of its family has ended."""
    moment, victim = random.uniform(0, seconds), random.choice(VICTIMS)
    with (team.stacks.parent / "killed.txt").open("w") as output:
        up = subprocess.Popen(
            [sys.executable, "-m", "cli", "up", "local", "--local", "--stacks", str(team.stacks)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            env={**os.environ, "TRAINYARD_HOME": str(team.home), "PULUMI_OPTION_COLOR": "never"},
        )  # fmt: skip
        family = [psutil.Process(up.pid)]
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                up.wait(moment)
            family = _family(up)
            died = _kill(team, family, victim, random)
        finally:
            _end(up, family)
    return f"at {moment:.1f} s of {seconds:.1f}: {victim} ({died})"


def _family(up: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The command and all that it started, but for the cloud, which is to live on."""
    with contextlib.suppress(psutil.NoSuchProcess):
        command = psutil.Process(up.pid)
        return [command, *(one for one in command.children(recursive=True) if not _is_cloud(one))]
    return []


def _is_cloud(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "localcloud.api" in process.cmdline()
    return False


def _kill(team: Team, family: list[psutil.Process], victim: str, random: Random) -> str:
    chosen = {"everything": family, "command": family[:1], "one": family[1:] and [random.choice(family[1:])]}
    if victim in ("everything", "cloud") and (cloud := control.running(team.home / "cloud")):
        chosen[victim] = [*chosen.get(victim, ()), psutil.Process(cloud.pid)]
    died = []
    for process in chosen.get(victim, ()):
        with contextlib.suppress(psutil.NoSuchProcess):
            died.append(process.name())
            process.kill()
    return ", ".join(died) or "it had ended"


def _end(up: subprocess.Popen[bytes], family: list[psutil.Process]) -> None:
    """What is left may finish what it does; only what hangs is ended here, and that is an error."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while (alive := [one for one in family if _lives(up, one)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    names = [_name(process) for process in alive]
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    up.wait(LONGEST_SECONDS)
    assert not names, f"outlived what started them: {names}"


def _lives(up: subprocess.Popen[bytes], process: psutil.Process) -> bool:
    """Remains that nobody collects yet are no life."""
    up.poll()
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return "?"
