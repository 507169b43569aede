# SPDX-License-Identifier: Apache-2.0
"""Reads the variables that change how the launcher works. Errors name the variable and its value."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from launcher.errors import LaunchError

_OFF, _ON = ("", "0"), ("1",)


def number_setting(environment: Mapping[str, str], name: str, default: float) -> float:
    """A number of 0 or more, such as seconds. Unset and empty mean the default."""
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


def flag_setting(environment: Mapping[str, str], name: str) -> bool:
    """Whether a variable is on. Any value but `0`, `1` and nothing is an error."""
    text = environment.get(name, "")
    if text not in (*_OFF, *_ON):
        raise LaunchError(f"{name} is {text!a}: write 1 to turn it on, 0 or nothing to turn it off")
    return text in _ON


def writable_folder(environment: Mapping[str, str], name: str) -> str:
    """A writable folder; empty if the variable is not set."""
    path = environment.get(name, "")
    if path and not (Path(path).is_dir() and os.access(path, os.W_OK)):
        raise LaunchError(f"{name} is {path!a}, which is not a writable folder: create it, or leave it out")
    return path


def check_numbers(environment: Mapping[str, str], names: Iterable[str]) -> None:
    """Validates all numbers before anything starts, because some are read only when a run ends."""
    for name in names:
        if name.endswith(("_SECONDS", "_MINUTES", "_MEGABYTES")):
            number_setting(environment, name, 0.0)
