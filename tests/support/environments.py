# SPDX-License-Identifier: Apache-2.0
"""The smallest environment, and a recorder of progress messages."""

from __future__ import annotations

from localcloud.environments.environment_rows import EnvironmentRow

TINY = EnvironmentRow("tiny", "nothing but Python", "venv", ("mini",), frozenset({"json"}), ("json",), 1, 1)


class Told:
    """Records progress messages."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def update(self, text: str) -> None:
        pass

    @property
    def times_made(self) -> int:
        return sum(text.startswith("making") for text in self.said)
