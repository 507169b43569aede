# SPDX-License-Identifier: Apache-2.0
"""The cases of `trainyard runs why`, read from tests/why/cases: what is done to a run, and what is then the truth.

A row of a file stands for several cases: one for each platform and victim, or for each direction of a rule.
"""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "why" / "cases"
# The nodes of each job by platform: see the stack files in tests/why/team.
NODES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "oci": {
        "": ("main-0", "worker-0", "worker-1"),
        "dask": ("scheduler-0", "worker-0", "worker-1"),
        "ray": ("head-0", "worker-0", "worker-1"),
        "parameters": ("main-0", "ps-0", "worker-0"),
    },
    "openpai": {"": ("main-0", "worker-0", "worker-1")},
    "aws": {"": ("main-0", "worker-0")},
}
NOTHING_IS_WRONG = "none"
# The causes that cases have: words of the verdict's own closed list.
CAUSES = frozenset({
    "access", "closed port", "crash", "deadlock", "disk", "early end", "exception", "exit", "image", "interface",
    "killed", "memory", "mismatch", "no answer", NOTHING_IS_WRONG, "shared memory", "store",
})  # fmt: skip
# When `runs why` is asked: when the run has ended, while it hangs, or while it trains.
ENDED, HANGING, TRAINING = "ended", "hanging", "training"


@dataclass(frozen=True)
class Case:
    """`action`: what the harness or the script does, `victim`: to which rank, `ports` and `ways`: of the rule that is
    closed. Then the truth: the cause, `ranks`, and words that the verdict must show. `quiet`: the run succeeds all the
    same, and a verdict without a cause is right, too. `says`: what the victim prints."""

    name: str
    platform: str
    job: str
    action: str
    cause: str
    victim: int = -1
    ports: str = ""
    ways: str = ""
    statement: str = ""
    says: str = ""
    asked: str = ENDED
    timeout: int = 0
    quiet: bool = False
    ranks: tuple[int, ...] = ()
    shows: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        return nodes_of(self.platform, self.job)

    @property
    def undisturbed(self) -> bool:
        return self.cause == NOTHING_IS_WRONG

    @property
    def held_back(self) -> bool:
        """Whether no test of a symptom may use it, so that a symptom is not made for the cases that test it."""
        return is_held_back(self.name)


def is_held_back(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def nodes_of(platform: str, job: str) -> tuple[str, ...]:
    jobs = NODES[platform]
    return jobs.get(job, jobs[""])


def read_cases(folder: Path = FOLDER) -> tuple[Case, ...]:
    """All cases, in the order of the files."""
    found: list[Case] = []
    for file in sorted(folder.glob("*.toml")):
        content = tomllib.loads(file.read_text("utf-8"))
        found += itertools.chain.from_iterable(map(_cases_of_row, content.get("case", ())))
        found += itertools.chain.from_iterable(map(_cases_of_rule, content.get("closed", ())))
    return tuple(found)


def _cases_of_row(row: Mapping[str, Any]) -> Iterator[Case]:
    told = {key: value for key, value in row.items() if key not in ("name", "platforms", "victims", "ranks", "line")}
    shows = (*row.get("shows", ()), *filter(None, [row.get("line")]))
    for platform in row["platforms"]:
        nodes = nodes_of(platform, row["job"])
        victims = row.get("victims", [-1])
        for victim in range(len(nodes)) if victims == "each" else victims:
            words = {"platform": platform, "victim": victim}
            own = {**told, "says": row.get("says", "").format(**words), "shows": shows}
            ranks = (victim,) if row.get("ranks") == "victim" else ()
            yield Case(
                **own | {"name": row["name"].format(**words), "platform": platform, "victim": victim, "ranks": ranks}
            )


def _cases_of_rule(row: Mapping[str, Any]) -> Iterator[Case]:
    """The rule is closed in both directions, and in one: in which one, the name decides."""
    platform = row.get("platform", "oci")
    nodes = [name for name in nodes_of(platform, row["job"]) if name.rpartition("-")[0] in {*row["from"], *row["to"]}]
    name = f"{platform}-{row['job']}-{row['ports']}-closed"
    for ways in ("both", "egress" if is_held_back(f"{name}-one-way") else "ingress"):
        yield Case(
            f"{name}-{ways}", platform, row["job"], "close", "closed port", ports=row["ports"], ways=ways,
            shows=(row["ports"], *nodes), asked=row.get("asked", ENDED),
        )  # fmt: skip
