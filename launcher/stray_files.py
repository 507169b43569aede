# SPDX-License-Identifier: Apache-2.0
"""Finds the files that training wrote outside of its output folder (docs/decisions/0016).

Files in its working directory are kept with the output, within limits. The log names all others.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from launcher.code import Patterns
from launcher.losses import Loss
from launcher.settings import number_setting
from launcher.sync import DRAFTS, NOT_UTF_8, Stamp, stamp_of_status
from launcher.walking import Budget, regular_files

# Programs mark their caches with such a file (https://bford.info/cachedir/).
_TAG, _SIGNATURE = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"
FILE_BYTES, ALL_BYTES, MOST_FILES = 50_000_000, 500_000_000, 1000
# Where storage costs nothing, a platform sets another limit, for one file and for all of them together.
LIMIT_VARIABLE = "TRAINYARD_KEEP_MEGABYTES"
_MEGABYTE = 1_000_000
# How many entries are looked at in all places together, and for how long.
_ENTRIES, _SECONDS = 100_000, 10.0
_TICK_SECONDS, _LONGEST_TICK_SECONDS = 0.001, 0.05
_TEMPORARY = "/tmp"


@dataclass(frozen=True)
class Cache:
    """Globs of files, and of folders (with a slash at the end). `at_top`: only directly in the working directory.

    `named`: there may be results among them, so the log names them.
    """

    names: tuple[str, ...]
    why: str
    named: bool = False
    at_top: bool = False


CACHES = (
    Cache(("__pycache__/", "*.pyc", "*.pyo"), "Python makes it again from the source"),
    Cache(
        (".cache/", ".keras/", ".torch/", "nltk_data/", "scikit_learn_data/", "tensorflow_datasets/", "seaborn-data/"),
        "libraries download it again: models of a hub, data sets, packages",
    ),
    Cache((".triton/", ".nv/", "torchinductor_*/", "torch_extensions/"), "compiled again for the node's own machine"),
    Cache((".config/", ".matplotlib/", ".ipython/", ".jupyter/"), "settings that programs write when they start"),
    Cache((".git/", ".hg/", ".svn/"), "the repository still exists where it was cloned from"),
    Cache((".venv/", ".local/", ".conda/", "site-packages/", "node_modules/", "*.egg-info/"), "installed packages"),
    Cache((".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".ipynb_checkpoints/"), "caches of developers' tools"),
    Cache(
        ("dask-scratch-space/", "dask-worker-space/", "joblib_memmapping_folder_*/", "pymp-*/", "torchelastic_*/"),
        "temporary files of frameworks",
    ),
    Cache(("trainyard-[0-9]*/",), "a launcher's own folder: output and checkpoints are kept from there"),
    Cache(
        ("MNIST/", "FashionMNIST/", "KMNIST/", "QMNIST/", "EMNIST/", "cifar-*-batches-py/", "cifar-100-python/"),
        "torchvision downloads such a data set",
        named=True,
    ),
    Cache(("cifar-*-python.tar.gz",), "torchvision downloads such a data set", named=True),
    Cache(("data/", "dataset/", "datasets/"), "scripts download data into such a folder", named=True, at_top=True),
)


def cache_of(name: str, is_folder: bool) -> Cache | None:
    """The row that matches a file or folder, by its path below the working directory."""
    last = name.rpartition("/")[2] + "/" * is_folder
    for row in CACHES:
        if not (row.at_top and "/" in name) and any(fnmatchcase(last, pattern) for pattern in row.names):
            return row
    return None


def has_cache_tag(folder: int) -> bool:
    """Whether an open folder contains the tag of a cache."""
    try:
        tag = os.open(_TAG, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return False
    try:
        return os.read(tag, len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False
    finally:
        os.close(tag)


@dataclass(frozen=True)
class WatchedFolder:
    """A folder where training may write. `moment`: the file system's own time when training began, in nanoseconds.

    `shared`: programs that are not ours may write there, too.
    """

    path: str
    moment: int
    shared: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits for files that `keep:` does not name: bytes of one file, and of all files together."""

    file: float = FILE_BYTES
    all: float = ALL_BYTES

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Limits:
        given = number_setting(environment, LIMIT_VARIABLE, 0.0) * _MEGABYTE
        return cls(given, given) if environment.get(LIMIT_VARIABLE) else cls()

    def exceeded(self, size: int, left: float, files: int) -> str:
        """Which limit a file exceeds, if `left` bytes and `files` files remain after earlier ones; empty if none."""
        if size > self.file:
            return f"larger than {self.file / _MEGABYTE:,.0f} MB"
        if size > left:
            return f"more than {self.all / _MEGABYTE:,.0f} MB together"
        return f"more than {MOST_FILES:,} files" if files >= MOST_FILES else ""


@dataclass(frozen=True)
class KeptFile:
    """A file of the working directory that goes into the bucket. `asked`: the job's `keep:` names it."""

    name: str
    stamp: Stamp
    asked: bool


@dataclass
class StrayFiles:
    """Finds files that scripts wrote outside of the folders that the launcher gives them. `own`: those folders."""

    environment: Mapping[str, str]
    keep: Patterns
    own: frozenset[str]
    _limits: Limits = field(init=False)
    _places: list[WatchedFolder] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._limits = Limits.of(self.environment)

    @property
    def folder(self) -> str:
        """The working directory; empty before training has begun."""
        return self._places[0].path if self._places else ""

    def begin(self, folder: str) -> None:
        """Notes the time before training begins in this folder. A later life keeps the time of the first one."""
        if self._places:
            return
        first = os.path.realpath(folder)
        temporary = {os.path.realpath(path) for path in (_TEMPORARY, self.environment.get("TMPDIR") or _TEMPORARY)}
        elsewhere = temporary | {os.path.realpath(self.environment.get("HOME") or folder)}
        self._places.append(WatchedFolder(first, _file_system_time(first)))
        for path in sorted(elsewhere):
            if path != first and not path.startswith(first.rstrip("/") + "/"):
                self._places.append(WatchedFolder(path, _file_system_time(path), shared=path in temporary))

    def look(self) -> tuple[list[KeptFile], list[Loss], bool]:
        """The files to keep, the files that are lost, and whether there were too many to look at all of them."""
        if not self._places:
            return [], [], False
        budget = Budget(_ENTRIES, _SECONDS)
        choice = _Choice(self.keep, self._limits)
        for name, status in self._made(self._places[0], budget):
            choice.add(name, status)
        kept, lost = choice.made()
        for place in self._places[1:]:
            for name, status in self._made(place, budget):
                lost.append(Loss(os.path.join(place.path, name), status.st_size, "outside of the working directory"))
        return kept, lost, budget.cut

    def whole(self, folders: Sequence[Path]) -> Iterator[tuple[str, int]]:
        """The paths and sizes of all files in these folders."""
        budget = Budget(_ENTRIES, _SECONDS)
        for folder in folders:
            for name, status in regular_files(os.path.realpath(folder), lambda *_: True, budget):
                yield str(folder / name), status.st_size

    def _made(self, place: WatchedFolder, budget: Budget) -> Iterator[tuple[str, os.stat_result]]:
        """The files that were created or changed since training began: their ctime is later."""
        others = {*self.own, *(other.path for other in self._places)} - {place.path}
        for name, status in regular_files(place.path, self._entering(place, others), budget):
            of_others = place.shared and status.st_uid != os.geteuid()
            if status.st_ctime_ns > place.moment and not of_others and not _is_unnamed(cache_of(name, is_folder=False)):
                yield name, status

    def _entering(self, place: WatchedFolder, others: set[str]) -> Callable[[str, os.stat_result, int], bool]:
        def enters(name: str, status: os.stat_result, folder: int) -> bool:
            if os.path.join(place.path, name) in others:
                return False
            if place.shared and (status.st_ctime_ns <= place.moment or status.st_uid != os.geteuid()):
                return False
            spelled = self.keep.spell(name.rpartition("/")[2])
            return spelled or not (_is_unnamed(cache_of(name, is_folder=True)) or has_cache_tag(folder))

        return enters


@dataclass
class _Choice:
    """Chooses the files of the working directory to keep: upper folders first, then small files, within the limits."""

    keep: Patterns
    limits: Limits
    _asked: list[KeptFile] = field(default_factory=list)
    _others: list[KeptFile] = field(default_factory=list)
    _cached: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    _lost: list[Loss] = field(default_factory=list)

    def add(self, name: str, status: os.stat_result) -> None:
        cache = _cache_above(name)
        if not _is_utf_8(name):
            self._lost.append(Loss(name, status.st_size, NOT_UTF_8, inside=True))
        elif self.keep.match(name):
            self._asked.append(KeptFile(name, stamp_of_status(status), asked=True))
        elif cache is not None:
            top, row = cache
            size, files, _ = self._cached.get(top, (0, 0, ""))
            self._cached[top] = (size + status.st_size, files + 1, row.why)
        elif name.endswith(DRAFTS):
            self._lost.append(Loss(name, status.st_size, "a draft by its name", inside=True))
        else:
            self._others.append(KeptFile(name, stamp_of_status(status), asked=False))

    def made(self) -> tuple[list[KeptFile], list[Loss]]:
        lost = [*self._lost]
        for top, (size, files, why) in self._cached.items():
            lost.append(Loss(top, size, why, inside=True, files=files))
        kept, over = files_within(self.limits, self._others)
        return [*sorted(self._asked, key=lambda file: file.name), *kept], [*lost, *over]


def files_within(limits: Limits, files: Iterable[KeptFile]) -> tuple[list[KeptFile], list[Loss]]:
    """The files that these limits keep, and those that they do not."""
    kept: list[KeptFile] = []
    lost: list[Loss] = []
    room = limits.all
    for file in sorted(files, key=lambda file: (file.name.count("/"), file.stamp[0], file.name)):
        size = file.stamp[0]
        why = limits.exceeded(size, room, len(kept))
        if why:
            lost.append(Loss(file.name, size, why, inside=True))
        else:
            room -= size
            kept.append(file)
    return kept, lost


def lost_elsewhere(kept: Iterable[KeptFile]) -> list[Loss]:
    """The kept files that would be lost on a platform that sets no limits of its own: on every real cloud."""
    return files_within(Limits(), (file for file in kept if not file.asked))[1]


def _cache_above(name: str) -> tuple[str, Cache] | None:
    """The uppermost folder of a file's path that a row matches (with a slash at its end), or the file itself."""
    parts: Sequence[str] = name.split("/")
    for count in range(1, len(parts) + 1):
        path, is_folder = "/".join(parts[:count]), count < len(parts)
        row = cache_of(path, is_folder)
        if row is not None and row.named:
            return path + "/" * is_folder, row
    return None


def _is_unnamed(row: Cache | None) -> bool:
    return row is not None and not row.named


def _is_utf_8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _file_system_time(folder: str) -> int:
    """The time now by the clock of the folder's file system. Files that are created after this call are newer."""
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, prefix=".trainyard-") as mark:
        first = os.fstat(mark.fileno()).st_ctime_ns
        deadline = time.monotonic() + _LONGEST_TICK_SECONDS
        while time.monotonic() < deadline:
            os.utime(mark.fileno())
            if os.fstat(mark.fileno()).st_ctime_ns > first:
                return first
            time.sleep(_TICK_SECONDS)
        return first - 1  # the file system has whole seconds: better one file too many than one too few
    return time.time_ns()
