# SPDX-License-Identifier: Apache-2.0
"""Reads the variables that change how the launcher works. A value that cannot be used is said with its name."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from launcher.errors import LaunchError

_OFF, _ON = ("", "0"), ("1",)


def number(environment: Mapping[str, str], name: str, default: float) -> float:
    """Seconds, minutes and the like: 0 or more. Unset and empty mean the default."""
    text = environment.get(name)
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise LaunchError(f"{name} is {text!a}, which is not a number of 0 or more: correct it, or leave it out")
    return value


def flag(environment: Mapping[str, str], name: str) -> bool:
    """On or off, and nothing that could be taken for either."""
    text = environment.get(name, "")
    if text not in (*_OFF, *_ON):
        raise LaunchError(f"{name} is {text!a}: write 1 to turn it on, 0 or nothing to turn it off")
    return text in _ON


def writable_folder(environment: Mapping[str, str], name: str) -> str:
    """A folder that may be written; empty where none is named."""
    path = environment.get(name, "")
    if path and not (Path(path).is_dir() and os.access(path, os.W_OK)):
        raise LaunchError(f"{name} is {path!a}, which is not a writable folder: create it, or leave it out")
    return path


def check(environment: Mapping[str, str], names: Iterable[str]) -> None:
    """All numbers at once, before anything starts: some are read only when a run ends."""
    for name in names:
        if name.endswith(("_SECONDS", "_MINUTES", "_MEGABYTES")):
            number(environment, name, 0.0)
