# SPDX-License-Identifier: Apache-2.0
"""The systems that scripts were written for. A job that speaks one (`speaks` of the stack file) gets the variables that
its script saw there, and small programs on its PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType

# The programs are below this module, too, and a script may call them often: they do without what takes time to import.
# `typing` is part of it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from launcher.document import Launch
    from launcher.placeholders import Place


def _spoken_systems(launch: Launch) -> Iterator[ModuleType]:
    """A module for each system, with `system_variables` and `wrap_script`, and the names of the `PROGRAMS` that
    PROGRAMS_FILE runs."""
    from launcher.errors import LaunchError

    for name in launch.speaks:
        try:
            yield import_module(f"launcher.speaks.{name}.variables")
        except ModuleNotFoundError:
            raise LaunchError(f"the script speaks `{name}`, which this image does not know: rebuild it") from None


def spoken_variables(launch: Launch, place: Place, environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """The variables of the systems. Those of the job, which `environment` has, come first."""
    found: dict[str, str] = {}
    for system in _spoken_systems(launch):
        found.update(system.system_variables(launch, place, environment, folder))
        if system.PROGRAMS:
            path = environment.get("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            found["PATH"] = f"{_folder_of_programs(place)}:{path}"
    return found


def wrap_for_systems(launch: Launch, words: Sequence[str]) -> list[str]:
    """The command line of a script, as the systems start it."""
    for system in _spoken_systems(launch):
        words = system.wrap_script(words)
    return list(words)


def write_programs(launch: Launch, place: Place) -> None:
    """Writes the programs into the node's own folder, from which PATH offers them."""
    from launcher.compatibility import shell_words

    folder = _folder_of_programs(place)
    for system in _spoken_systems(launch):
        for name in system.PROGRAMS:
            os.makedirs(folder, exist_ok=True)
            words = shell_words((sys.executable, "-I", "-S", system.PROGRAMS_FILE, name))
            with open(f"{folder}/{name}", "w", encoding="utf-8") as program:
                program.write(f'#!/bin/sh\nexec {words} "$@"\n')
            os.chmod(f"{folder}/{name}", 0o755)


def _folder_of_programs(place: Place) -> str:
    return f"{place.scratch}/programs"
