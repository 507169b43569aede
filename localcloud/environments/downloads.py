# SPDX-License-Identifier: Apache-2.0
"""What pip would download for a layer: its packages with their sizes, before anything is downloaded."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

import pip
from packaging.utils import parse_wheel_filename

from catalog.tables import table
from localcloud.environments.watched_commands import QUIET, MakeError, MakeProgress, run_watched
from trainyard.engine.isolated import isolated_python

_SIZE_SECONDS = 5.0
_AT_ONCE = 16
# The kernel's file for the driver of NVIDIA's cards.
_DRIVER = Path("/proc/driver/nvidia/version")
_MOST_NAMED = 3
# Ends pip when it has chosen all versions, before it downloads wheels: `--dry-run` downloads them all. Metadata comes
# from the index, or from the end of a wheel.
_PLAN = """
import json, os, sys
# What pip leaves when it is ended goes with the folder of the plan.
os.environ["TMPDIR"] = os.path.dirname(sys.argv[2])
sys.path.insert(0, sys.argv[1])
from pip._internal.cli.main import main
from pip._internal.operations.prepare import RequirementPreparer
sys.path.pop(0)
plan, words = sys.argv[2], sys.argv[3:]

def write(self, chosen, *more, **options):
    rows = [(one.link.filename, one.link.url) for one in chosen if one.link]
    with open(plan, "w") as file:
        json.dump(rows, file)
    os._exit(0)  # pip takes every exception for an error

RequirementPreparer.prepare_linked_requirements_more = write
raise SystemExit(main(["install", *words]))
"""


@dataclass(frozen=True)
class Download:
    """A package that pip would install. `size` in bytes: None if its server does not say."""

    name: str
    version: str
    size: int | None


def planned_downloads(python: Path, words: Sequence[str], tell: MakeProgress, title: str) -> list[Download]:
    """What `pip install` with these words would install now. Empty if that cannot be known beforehand: the install
    itself says why."""
    with TemporaryDirectory(prefix="trainyard-plan-") as folder:
        plan, arguments = Path(folder, "plan.json"), ("--use-feature=fast-deps", *QUIET, *words)
        words_of_plan = (str(Path(pip.__file__).parents[1]), str(plan), *arguments)
        command = isolated_python("-c", _PLAN, *words_of_plan, python=python)
        try:
            run_watched(command, tell, f"{title}: choosing versions")
            packages = json.loads(plan.read_text("utf-8"))
        except (MakeError, OSError, ValueError):
            return []
    wheels = [(parse_wheel_filename(name), url) for name, url in packages if name.endswith(".whl")]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        sizes = pool.map(_ask_wheel_size, (url for _, url in wheels))
        return [Download(wheel[0], str(wheel[1]), size) for (wheel, _), size in zip(wheels, sizes, strict=True)]


def _ask_wheel_size(url: str) -> int | None:
    """The index has no sizes that pip passes on, so the server is asked. Without pip's credentials it may refuse."""
    try:
        if (parts := urlsplit(url)).scheme == "file":
            return Path(unquote(parts.path)).stat().st_size
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=_SIZE_SECONDS) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, ValueError, TypeError):
        return None


def gpu_only_downloads(downloads: Iterable[Download]) -> list[Download]:
    """The packages that are of use with NVIDIA's cards only. Empty on a machine with such cards."""
    patterns = table("modules")["gpu_only"]["packages"]
    if _DRIVER.exists():
        return []
    return [one for one in downloads if any(fnmatch(one.name, pattern) for pattern in patterns)]


def downloads_that_need_gpu(downloads: Iterable[Download]) -> list[Download]:
    """The packages that cannot be imported without the libraries of NVIDIA that they were built with."""
    return [one for one in downloads if one.name in table("modules")["gpu_only"]["linked"]]


def describe_download_size(downloads: Sequence[Download]) -> str:
    """`23 packages, 812 MB to download (torch 780 MB, numpy 17 MB, ...)`, the largest first."""
    known = sorted((download for download in downloads if download.size), key=lambda download: -(download.size or 0))
    count = f"{len(downloads)} package{'' if len(downloads) == 1 else 's'}"
    if not known:
        return f"{count}, of unknown size"
    largest = ", ".join(f"{download.name} {_format_megabytes([download])} MB" for download in known[:_MOST_NAMED])
    largest += ", …" if len(known) > _MOST_NAMED else ""
    unknown = "" if len(known) == len(downloads) else f"; the size of {len(downloads) - len(known)} is unknown"
    return f"{count}, {_format_megabytes(known)} MB to download ({largest}{unknown})"


def _format_megabytes(downloads: Iterable[Download]) -> str:
    return f"{max(1, round(sum(download.size or 0 for download in downloads) / 1e6)):,}"
