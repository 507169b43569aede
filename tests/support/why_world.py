# SPDX-License-Identifier: Apache-2.0
"""Runs cases of `trainyard runs why`: starts a run as a user does, acts, and asks. Only what commands print counts."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.platform.runs import TERMINAL
from localcloud import control
from localcloud.environments.find import MissingEnvironment, find_environment
from tests.support.console_reader import console_runs
from tests.support.local_team import LONGEST_SECONDS, ROOT
from tests.support.waiting import eventually
from tests.support.why_actions import SIGNALS, acted_before, acted_when_accepted, acted_while_training
from tests.support.why_cases import ENDED, HANGING, NOTHING_IS_WRONG, TRAINING, Case

TEAM = ROOT / "tests" / "why" / "team"
# A run hangs if it has printed nothing for this long.
_QUIET_SECONDS = 5.0
# If it does not come to its fourth step, because its nodes do not meet: from its start on.
_HANGS_AFTER = 25.0
# A verdict knows after a minute whether ranks moved, and a run that is idle for so long is ended (stallMinutes).
_ASKED_AGAIN_SECONDS = 75.0
_STEP_OF_THE_DEED = 4
_STEP = re.compile(r"\[\d+ (\S+)\] \[\d+\] rank \d+ of \d+ step (\d+) ")
# Steps of a run that something is done to from outside, or that is asked in the middle.
_MANY_STEPS, _ASKED_STEPS = 3000, 150
# `disturbed`: nothing was done to the run, and it failed all the same.
RIGHT, INCOMPLETE, WRONG, WRONG_WITH_CERTAINTY, SILENT, DISTURBED = OUTCOMES = (
    "right", "incomplete", "wrong", "wrong with certainty", "silent", "disturbed",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a user sees of a run: the verdict and the state. `screen`: what the follower has shown. `on_console`: the
    cause that the console shows."""

    case: Case
    verdict: Mapping[str, Any]
    state: str
    screen: str
    on_console: str

    @property
    def outcome(self) -> str:
        return judge_answer(self.case, self.verdict, self.state)

    def __str__(self) -> str:
        told = {key: self.verdict.get(key) for key in ("kind", "certainty", "ranks", "line", "cause", "rule", "look")}
        return f"{self.outcome:20} {self.case.name}: {self.state} {json.dumps(told, ensure_ascii=False)}"


def judge_answer(case: Case, verdict: Mapping[str, Any], state: str) -> str:
    """Compares a verdict with what was done. The schema is that of `trainyard runs why --format json`."""
    kind, certainty = verdict["kind"], verdict["certainty"]
    if case.undisturbed:
        accuses = kind not in ("none", "unknown") or verdict["ranks"]
        if accuses:
            return WRONG_WITH_CERTAINTY if certainty == "certain" else WRONG
        return RIGHT if state == "SUCCEEDED" else DISTURBED
    if kind in ("none", "unknown") or certainty == "unknown":
        return RIGHT if case.quiet and state == "SUCCEEDED" else SILENT
    if kind != case.cause or (case.ranks and {*verdict["ranks"]} != {*case.ranks}):
        return WRONG_WITH_CERTAINTY if certainty == "certain" else WRONG
    words = json.dumps({key: value for key, value in verdict.items() if key != "evidence"}, ensure_ascii=False)
    return RIGHT if all(text in words for text in case.shows) else INCOMPLETE


@dataclass
class Follower:
    """`trainyard run … --follow`, which prints what all nodes print."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    last_at: float = field(default_factory=time.monotonic)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self.last_at = time.monotonic()

    @property
    def screen(self) -> str:
        return "".join(self.lines)

    @property
    def over(self) -> bool:
        return self.process.poll() is not None

    @property
    def accepted(self) -> bool:
        return self.over or any(line.startswith("Started ") for line in self.lines)

    def reached(self, nodes: Sequence[str], step: int) -> bool:
        """Whether all nodes have come to a step."""
        seen = {found[1] for found in map(_STEP.match, list(self.lines)) if found and int(found[2]) >= step}
        return self.over or seen >= {*nodes}

    def quiet(self, seconds: float) -> bool:
        return self.over or time.monotonic() - self.last_at > seconds


class WhyWorld:
    """A team with a stack on each platform, on one local cloud. Each stack comes up when its first case runs."""

    def __init__(self, root: Path) -> None:
        self.stacks, self.home = root / "stacks", root / "home"
        # Processes are found by it, and this machine may have those of another world.
        self.token = secrets.token_hex(4)
        shutil.copytree(TEAM, self.stacks)
        self._up: dict[str, threading.Lock] = {platform: threading.Lock() for platform in ("oci", "openpai", "aws")}
        self._is_up: set[str] = set()

    @property
    def cloud(self) -> control.Cloud:
        return control.start_cloud(self.home / "cloud")

    def trainyard(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._words(*words), cwd=ROOT, env=self._environment(), capture_output=True, text=True,
            timeout=LONGEST_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def _words(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "trainyard", *words]

    def _place(self) -> list[str]:
        return ["--local", "--stacks", str(self.stacks)]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TRAINYARD_HOME": str(self.home), "PULUMI_OPTION_COLOR": "never"}

    def bring_up(self, platform: str) -> None:
        with self._up[platform]:
            if platform not in self._is_up:
                done = self.trainyard("up", f"why-{platform}", *self._place())
                assert done.returncode == 0, done.stdout + done.stderr
                self._is_up.add(platform)

    def end(self) -> None:
        control.stop_cloud(self.home / "cloud")

    def ask(self, case: Case, name: str) -> Answer:
        """Starts a run, does what the case says, and asks why."""
        self.bring_up(case.platform)
        stack, title = f"why-{case.platform}", f"{case.job}/try-{name}"
        with acted_before(self.cloud, case), self._follower(case, name) as follower:
            eventually(lambda: follower.accepted, seconds=LONGEST_SECONDS, describe=lambda: follower.screen)
            assert "Started " in follower.screen, follower.screen
            try:
                with acted_when_accepted(self.cloud, case):
                    if case.action in SIGNALS:
                        eventually(lambda: follower.reached(case.nodes, _STEP_OF_THE_DEED), seconds=LONGEST_SECONDS)
                    with acted_while_training(case, f"{name}-{self.token}"):
                        self._wait(case, follower)
                        verdict = self._verdict(stack, title)
                        if case.asked == HANGING and verdict["kind"] == NOTHING_IS_WRONG and not follower.over:
                            # As it says: a minute later it knows whether ranks moved. Or the run has ended as stalled.
                            asked = time.monotonic()
                            eventually(
                                lambda: follower.over or time.monotonic() - asked > _ASKED_AGAIN_SECONDS,
                                seconds=LONGEST_SECONDS,
                            )
                            verdict = self._verdict(stack, title)
                    if case.asked == TRAINING:
                        eventually(lambda: follower.over, seconds=LONGEST_SECONDS, describe=lambda: follower.screen)
                    state = self._state(stack, title)
                    on_console = console_runs(self.cloud)[title]["cause"]
            finally:
                if not follower.over:
                    self.trainyard("runs", "cancel", stack, title, "--yes", *self._place())
        # Machines take the next run after they have told the store that this one has ended.
        eventually(lambda: self._state(stack, title), TERMINAL.__contains__, longest_pause=1.0)
        return Answer(case, verdict, state, follower.screen, on_console)

    def _state(self, stack: str, title: str) -> str:
        seen = self.trainyard("runs", "list", stack, title, *self._place(), "--format", "json")
        (run,) = json.loads(seen.stdout)
        return str(run["state"])

    def _verdict(self, stack: str, title: str) -> dict[str, Any]:
        done = self.trainyard("runs", "why", stack, title, *self._place(), "--format", "json")
        assert done.returncode in (0, 1), done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def _wait(self, case: Case, follower: Follower) -> None:
        """Waits until the question makes sense: the run has ended, hangs, or trains."""
        if case.asked == ENDED:
            eventually(lambda: follower.over, seconds=LONGEST_SECONDS, describe=lambda: follower.screen)
        elif case.asked == TRAINING:
            eventually(lambda: follower.reached(case.nodes, 2), seconds=LONGEST_SECONDS)
        elif case.cause in ("store", "access", "closed port"):
            began = time.monotonic()
            eventually(lambda: follower.over or time.monotonic() - began > _HANGS_AFTER, seconds=LONGEST_SECONDS)
        else:
            assert case.asked == HANGING
            eventually(lambda: follower.reached(case.nodes, _STEP_OF_THE_DEED), seconds=LONGEST_SECONDS)
            eventually(lambda: follower.quiet(_QUIET_SECONDS), seconds=LONGEST_SECONDS)

    @contextmanager
    def _follower(self, case: Case, name: str) -> Iterator[Follower]:
        from_outside = case.action in SIGNALS
        steps = _ASKED_STEPS if case.asked == TRAINING else _MANY_STEPS if from_outside else 20
        told = ["--steps", str(steps), "--says", case.says]
        told += [] if from_outside else ["--victim", str(case.victim), "--does", case.action]
        told += ["--timeout", str(case.timeout)] if case.timeout else []
        words = self._words(
            "run", f"why-{case.platform}", case.job, "--follow", "--name", name, *self._place(), "--",
            *told, "--case", f"{name}-{self.token}",
        )  # fmt: skip
        process = subprocess.Popen(
            words, cwd=ROOT, env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        follower = Follower(process)
        reader = threading.Thread(target=follower.read, daemon=True)
        reader.start()
        try:
            yield follower
        finally:
            process.terminate()
            process.wait()
            reader.join()
            assert process.stdout is not None
            process.stdout.close()


def score_of(answers: Sequence[Answer]) -> str:
    """The counts, and each answer that is not right."""
    counts = Counter(answer.outcome for answer in answers)
    words = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
    return "\n".join(
        [f"{len(answers)} cases: {words}", *(str(answer) for answer in answers if answer.outcome != RIGHT)]
    )


def skip_without_environments(*names: str) -> None:
    for name in names:
        found = find_environment(name)
        if isinstance(found, MissingEnvironment):
            pytest.skip(f"the environment {found.name}: {found.reason}; {found.remedy}")
