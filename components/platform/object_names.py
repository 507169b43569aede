# SPDX-License-Identifier: Apache-2.0
"""From names in a bucket to paths in a folder, and back. Names are hostile until shown otherwise."""

from __future__ import annotations

import os

# What is being fetched lies here, in the folder it is fetched into.
WORKPLACE = ".trainyard-transfers"
_LONGEST_PART = 255
_LONGEST_PATH = 4000
# Most stores take no longer name.
LONGEST_NAME = 1024


def local_path(name: str) -> tuple[tuple[str, ...], str]:
    """The steps of a path below a folder, and why there are none.

    Every step is an ordinary name of a file: it neither climbs nor starts anew, on any system.
    """
    steps = tuple(name.split("/"))
    why = next((why for why in map(_why_not, steps) if why), "")
    if not why and steps[0] == WORKPLACE:
        why = f"`{WORKPLACE}` is where fetched files wait until they are whole"
    if not why and len(os.fsencode(name)) > _LONGEST_PATH:
        why = "its path is too long for this system"
    return ((), why) if why else (steps, "")


def _why_not(step: str) -> str:
    if step in ("", ".", ".."):
        return "its name has an empty step, or one that climbs out of the folder (`..`)"
    if "\\" in step or not step.isprintable():
        return "its name has a backslash, or a character that nobody sees"
    try:
        return "a step of its name is too long for this system" if len(step.encode()) > _LONGEST_PART else ""
    except UnicodeEncodeError:
        return "its name is not valid UTF-8"


def object_name(prefix: str, path: str) -> tuple[str, str]:
    """The name in the bucket of a file below `prefix`, and why there is none."""
    name = f"{prefix}/{path}" if prefix else path
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "", "its name is not valid UTF-8, as names in a bucket have to be"
    if length > LONGEST_NAME:
        return "", f"its name in the bucket would have {length} bytes; {LONGEST_NAME} are possible"
    # What could not be fetched again is not put.
    why = local_path(name)[1]
    return ("", why) if why else (name, "")
