# SPDX-License-Identifier: Apache-2.0
"""Reads the changelog's section on one release."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADING = re.compile(r"^## (?P<version>\S+), (?P<when>.+)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
UNRELEASED = "unreleased"


class NotesError(Exception):
    """The changelog has no valid section on this release."""


@dataclass(frozen=True)
class Notes:
    """The section on a release. `released` is False while its heading says `unreleased`."""

    text: str
    released: bool


def read_notes(changelog: str, version: str) -> Notes:
    headings = list(_HEADING.finditer(changelog))
    if not headings or headings[0]["version"] != version:
        first = f"begins with {headings[0]['version']}" if headings else "has no heading `## VERSION, DATE`"
        raise NotesError(f"catalog/version.py says {version}, but CHANGELOG.md {first}: make the two agree")
    heading = headings[0]
    if heading["when"] != UNRELEASED and not _DATE.fullmatch(heading["when"]):
        raise NotesError(f"the heading of {version} in CHANGELOG.md needs a date (2026-05-31) or `{UNRELEASED}`")
    end = headings[1].start() if len(headings) > 1 else len(changelog)
    return Notes(changelog[heading.start() : end].rstrip() + "\n", heading["when"] != UNRELEASED)
