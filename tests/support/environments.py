# SPDX-License-Identifier: Apache-2.0
"""The smallest environment, and what keeps the progress of making one."""

from __future__ import annotations

from localcloud.environments.rows import EnvironmentRow

TINY = EnvironmentRow("tiny", "nothing but Python", "venv", ("mini",), frozenset({"json"}), ("json",), 1, 1)


class Told:
    """Keeps what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def update(self, text: str) -> None:
        pass

    @property
    def times_made(self) -> int:
        return sum(text.startswith("making") for text in self.said)
