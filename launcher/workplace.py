# SPDX-License-Identifier: Apache-2.0
"""The folders this node gives its processes, and what becomes of what they write there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launcher.document import Launch
from launcher.say import Voice

PLACE_VARIABLE = "TRAINYARD_PLACE"


@dataclass
class Workplace:
    """`output` goes to the bucket in the end; `checkpoints` all along, and comes back from there."""

    launch: Launch
    environment: Mapping[str, str]
    say: Voice
    root: Path = field(init=False)

    def __post_init__(self) -> None:
        base = self.environment.get(PLACE_VARIABLE) or self.environment.get("HOME") or ""
        if not base or not os.access(base, os.W_OK):
            base = self.environment.get("TMPDIR") or "/tmp"
        self.root = Path(base) / f"trainyard-{os.getpid()}"
        for folder in (self.output, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def progress(self) -> Path:
        return self.root / "progress.jsonl"

    @property
    def variables(self) -> dict[str, str]:
        """What the processes are told of it."""
        return {
            "TRAINYARD_OUTPUT": str(self.output),
            "TRAINYARD_CHECKPOINTS": str(self.checkpoints),
            "TRAINYARD_PROGRESS": str(self.progress),
            "OCI__SYNC_DIR": self.environment.get("OCI__SYNC_DIR") or str(self.output),
        }

    def restore(self) -> None:
        pass

    def tick(self) -> None:
        pass

    def before_the_end(self) -> None:
        pass

    def flush(self, whole: bool) -> None:
        pass

    def finish(self) -> bool:
        return True
