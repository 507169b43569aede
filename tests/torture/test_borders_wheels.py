# SPDX-License-Identifier: Apache-2.0
"""No wheel writes a file outside of its environment, whether it is refused or installed by the real pip."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from localcloud.environments import cache
from localcloud.environments.watched_commands import MakeError
from tests.support.counts import FIRST, wanted
from tests.support.package_shelf import Shelf, shelf, tiny_cache
from tests.support.wheels import HostileWheel, hostile_wheels

# A wheel takes some seconds, the requests that this part counts take milliseconds.
WHEELS = max(1, wanted(sample=1, full=20_000) // 100)
_PARTS = ("..", ".", "", "/", "\\", "\n", "\x0b", "\u2028", " ", "=", ":", "[", "]", "#", ";", "x", "bin", "rude:main")

__all__ = ["shelf", "tiny_cache"]


def files_below(folder: Path, but: Path = Path("/nowhere")) -> Mapping[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(but))
    return {str(path): path.read_bytes() for path in files}


def drawn_wheel(draws: random.Random, outside: str) -> HostileWheel:
    """A wheel with a script and files whose names are drawn from what separates, ends and lifts paths."""
    if draws.random() < 0.3:
        return draws.choice(list(hostile_wheels(outside).values()))
    drawn = "".join(draws.choices([*_PARTS, outside, "../" * 12 + outside.lstrip("/")], k=draws.randint(1, 6)))
    line = draws.choice([f"{drawn} = rude:main", f"x = {drawn}", f"x = rude:main{drawn} = rude:main", drawn])
    place = draws.choice(["", "rude/", "rude-1.0.data/data/", "rude-1.0.data/scripts/", "rude-1.0.data/headers/"])
    scripts = ("rude-1.0.dist-info/entry_points.txt", f"[{draws.choice(['console', 'gui'])}_scripts]\n{line}\n")
    return HostileWheel(draws.choice([[scripts], [(place + drawn.lstrip("/"), "x")]]))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + WHEELS))
def test_no_wheel_writes_outside_of_its_environment(shelf: Shelf, tmp_path: Path, seed: int) -> None:
    home = tmp_path / "home" / "bin"
    home.mkdir(parents=True)
    victim = home / "git"
    victim.write_text("git")
    drawn_wheel(random.Random(seed), str(victim)).write(shelf.folder)
    layers = cache.environments_cache()
    before = files_below(tmp_path), files_below(layers.parent.parent, layers)
    with contextlib.suppress(MakeError):
        shelf.make("rude")
    assert (files_below(tmp_path), files_below(layers.parent.parent, layers)) == before
