# SPDX-License-Identifier: Apache-2.0
"""The cache of environments, which all clones on a machine share. One process makes a folder. Others use it only when
it is complete."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from localcloud.environments.environment_rows import EnvironmentRow
from trainyard.engine.trusted import open_lock, own_folder, why_planted

STAMP = "ready.json"
# Raised when folders made by an earlier trainyard must not be used any more.
RECIPES = 1
# Columns that describe an environment and do not change its content.
_DESCRIPTIVE = frozenset({"summary", "serves", "offers", "provides", "variables", "megabytes", "minutes"})


@dataclass(frozen=True)
class Stamp:
    """The result of an environment's test, written last. `modules`: files that must still exist."""

    python: str
    versions: Mapping[str, str]
    modules: Mapping[str, str]


_BELOW_ROOT = ("trainyard", "environments")


def _user_cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def environments_cache() -> Path:
    return _user_cache_folder().joinpath(*_BELOW_ROOT)


def why_not_trusted(*places: Path) -> str:
    """Why the cache must not be used, because other users may write to it; empty if it may be used."""
    folder = environments_cache()
    for place in (folder.parent, folder, *places):
        if why := why_planted(place):
            return f"{place} {why}"
    return ""


def environment_folder(row: EnvironmentRow, interpreter: Path, base_stamp: Stamp | None) -> Path:
    """The folder of an environment. Its name depends on everything in it: lock, row, interpreter and base."""
    recipe = {
        "format": RECIPES,
        "row": {name: value for name, value in asdict(row).items() if value and name not in _DESCRIPTIVE},
        "lists": [path.read_text("utf-8") for path in (*row.lists, *row.repairs)],
        "interpreter": str(interpreter.resolve()),
        "base": asdict(base_stamp) if base_stamp else None,
    }
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]
    return environments_cache() / f"{row.name}-{digest}"


def read_stamp(folder: Path, prefix: str = "") -> Stamp | None:
    """The stamp of an environment; None if it is not complete, if its base was removed, or if it is not trusted.
    `prefix`: the folder inside that has the interpreter, if it is not the environment itself."""
    programs = folder / prefix / "bin"
    if why_not_trusted(folder, programs.parent, programs, folder / STAMP):
        return None
    try:
        stamp = Stamp(**json.loads((folder / STAMP).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    whole = (programs / "python").exists() and all(Path(path).exists() for path in stamp.modules.values())
    return stamp if whole and not _original_folder(folder, stamp) else None


def why_unusable(folder: Path) -> str:
    """Why an environment that is there must not be used; empty if it is not there, or may be used."""
    if why := why_not_trusted(folder):
        return why
    try:
        elsewhere = _original_folder(folder, Stamp(**json.loads((folder / STAMP).read_text("utf-8"))))
    except (OSError, ValueError, TypeError):
        return ""
    return f"{folder} is a copy of {elsewhere}, and its programs only run there" if elsewhere else ""


def _original_folder(folder: Path, stamp: Stamp) -> str:
    """The folder in which an environment was made, if it was copied or moved since. Its programs name that folder,
    which nodes do not see."""
    for path in map(Path, stamp.modules.values()):
        made = next((place for place in path.parents if place.name == folder.name), folder)
        if made.resolve() != folder.resolve():
            return str(made)
    return ""


def write_stamp(folder: Path, stamp: Stamp) -> None:
    part = folder / f".{STAMP}"
    part.unlink(missing_ok=True)
    part.write_text(json.dumps(asdict(stamp), indent=1), "utf-8")
    part.rename(folder / STAMP)


@contextlib.contextmanager
def lock_environment(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock of a folder, so that only one process makes it. Others wait. The lock ends with its process.

    The commands that fill the folder (commands.run_watched) inherit the lock, because they go on for a while if their
    parent is killed. Until they have ended, no other process may write there.
    """
    own_folder(_user_cache_folder(), *_BELOW_ROOT)
    with open_lock(folder.parent / f".{folder.name}.lock") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is making {folder.name}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def clear_folder(folder: Path) -> None:
    """Deletes an incomplete folder. The stamp is deleted first, so that the rest cannot be taken for complete."""
    (folder / STAMP).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def remove_unless_locked(folder: Path) -> bool:
    """Removes a folder. False if another process is making it."""
    with open_lock(folder.parent / f".{folder.name}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        clear_folder(folder)
    return True
