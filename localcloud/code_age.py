# SPDX-License-Identifier: Apache-2.0
"""Detects that a running cloud is older than the code of a command that calls it.

A cloud imports most of its code when it starts, and the rest when it is first needed; so do its nodes. After a
`git pull` or an edit, parts of two versions run together. Without this check their failures would have no explanation.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from localcloud.control import default_home

PROJECT = Path(__file__).resolve().parents[1]
# The files that a cloud and its nodes use.
_SUFFIXES = (".py", ".toml", ".json", ".c")
_ROOMS = ("localcloud", "launcher", "catalog", "provider", "trainyard/engine", "trainyard/why", "components")


def why_cloud_is_older(home: Path, project: Path = PROJECT) -> str:
    """Why the cloud of this folder does not run the code of `project`, with the remedy. Empty if it does or is down."""
    record = home / "server.json"
    try:
        began, code = record.stat().st_mtime_ns, Path(json.loads(record.read_text("utf-8"))["code"])
    except (OSError, ValueError):
        return ""
    except KeyError:
        return _add_restart_remedy("The local cloud was started by an earlier release", home)
    # The ctime changes with a file's content and name, and cannot be set.
    changed = [file for file, status in _code_files(code) if status.st_ctime_ns > began]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        return _add_restart_remedy(f"{min(changed)}{more} changed after the local cloud started", home)
    if code != project and _code_digest(code) != _code_digest(project):
        return _add_restart_remedy(f"The local cloud runs the code of {code}, and this is {project}", home)
    return ""


def _add_restart_remedy(why: str, home: Path) -> str:
    where = "" if home == default_home() else f" --home {shlex.quote(str(home))}"
    return (
        f"{why}: its nodes may load code of both versions, and fail.\n"
        f"To restart it: trainyard cloud stop{where}, then the same command again. This ends its runs."
    )


def _code_digest(project: Path) -> str:
    lines = (
        f"{file.relative_to(project)} {sha256(file.read_bytes()).hexdigest()}\n" for file, _ in _code_files(project)
    )
    return sha256("".join(sorted(lines)).encode()).hexdigest()


def _code_files(project: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The code's files, without bytecode; none if the checkout was removed."""
    for room in _ROOMS:
        for folder, folders, names in os.walk(project / room):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                if name.endswith(_SUFFIXES) and not name.startswith("."):
                    with suppress(FileNotFoundError):
                        yield Path(folder, name), os.stat(os.path.join(folder, name))
