# SPDX-License-Identifier: Apache-2.0
"""What an `up` leaves behind that was killed, and whose state was thrown away; and `trainyard drift --orphans` as a
person types it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.support.local_team import Team
from tests.support.up_beside import kill, up_beside
from tests.support.waiting import eventually
from trainyard.cli.main import main


@dataclass(frozen=True)
class Orphanage:
    """A team whose `up` of `stack` is killed."""

    team: Team
    stack: str

    @property
    def states(self) -> Path:
        return self.team.home / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard"

    def rows_in_state(self) -> list[dict[str, Any]]:
        """None while the engine has written none, or is writing one."""
        try:
            text = (self.states / f"{self.stack}.json").read_text()
            return list((json.loads(text)["checkpoint"]["latest"] or {}).get("resources") or ())
        except (OSError, ValueError):
            return []

    def kill_up_after(self, rows: int) -> None:
        """Kills `up` with SIGKILL as soon as its state has so many resources, and throws the state away."""
        with up_beside(self.team, stack=self.stack) as up:
            eventually(lambda: up.over or len(self.rows_in_state()) >= rows, bool)
            assert self.rows_in_state(), up.said()
            family = up.family()
            kill(family)
            up.end(family)
        (self.states / f"{self.stack}.json").unlink()

    def wait_until_still(self, read: Callable[[], Any]) -> None:
        """Waits until `read` shows the same several times: a cloud answers the last requests of a killed engine."""
        seen: list[Any] = []
        eventually(lambda: seen.append(read()), lambda _: len(seen) > 5 and seen[-1] == seen[-5])

    def write_state(self, stack: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """The state of another stack, in the same backend."""
        self.states.mkdir(parents=True, exist_ok=True)
        urn = f"urn:pulumi:{stack}::trainyard::"
        written = [{"custom": True, "urn": f"{urn}{row['type']}::{row['id']}", **row} for row in rows]
        text = json.dumps({"version": 3, "checkpoint": {"latest": {"resources": written}}})
        (self.states / f"{stack}.json").write_text(text)

    def orphans(self, *words: str) -> tuple[int, dict[str, Mapping[str, Any]], str]:
        """The exit code, what was found by id, and stderr."""
        where = ["--home", str(self.team.home / "cloud"), "--stacks", str(self.team.stacks)]
        env = {"TRAINYARD_HOME": str(self.team.home)}
        done = CliRunner().invoke(main, ["drift", *words, "--orphans", *where, "--format", "json"], env=env)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        try:
            found = json.loads(done.stdout)
        except ValueError:
            return done.exit_code, {}, done.output
        return done.exit_code, {one["id"]: one for one in found["orphans"]}, "\n".join(found["unread"]) + done.stderr
