# SPDX-License-Identifier: Apache-2.0
"""Shared by the scripts of the folders beside this file: data, a line for each step, and an optional checkpoint."""

import argparse
import json
import os
import random
import time
from pathlib import Path

COLUMNS = 16
ROWS = 32
RATE = 0.02
# The checkpoint is written only once, after this step, so that a test knows where a run resumes.
HALF = 3
CHECKPOINT = Path(os.environ.get("TRAINYARD_CHECKPOINTS", ".")) / "half.json"


class Steps:
    """The steps of a run: first, last, and the line that is printed for each."""

    def __init__(self) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--steps", type=int, default=6)
        parser.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes longer")
        parser.add_argument("--keep", action="store_true", help="write the checkpoint, and resume from it")
        parser.add_argument("--note", help="changes nothing but the arguments")
        self._options = parser.parse_args()
        resumes = self._options.keep and CHECKPOINT.exists()
        kept = json.loads(CHECKPOINT.read_text()) if resumes else {"step": 0, "weights": [0.0] * COLUMNS}
        self.weights = kept["weights"]
        self._done = kept["step"]

    def left(self) -> range:
        return range(self._done + 1, self._options.steps + 1)

    def after(self, step: int, loss: float, weights: list[float], rank: int, **more: object) -> None:
        """Every rank calls this after each step."""
        if rank == 0:
            print("step " + json.dumps({"step": step, "loss": loss, **more}), flush=True)
        if rank == 0 and self._options.keep and step == HALF:
            whole = CHECKPOINT.with_suffix(".tmp")
            whole.write_text(json.dumps({"step": step, "weights": weights}))
            whole.replace(CHECKPOINT)
        time.sleep(self._options.pause)


def here(rank: int, world: int) -> None:
    """Each rank prints this after it has joined the others."""
    print(f"here {rank} of {world}", flush=True)


def batch(step: int, rank: int) -> tuple[list[list[float]], list[list[float]]]:
    """The rows of a step and rank, and their sums. They are the same at every start."""
    chance = random.Random(step * 1000 + rank)
    rows = [[chance.random() for _ in range(COLUMNS)] for _ in range(ROWS)]
    return rows, [[sum(row)] for row in rows]
