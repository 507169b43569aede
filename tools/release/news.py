# SPDX-License-Identifier: Apache-2.0
"""Reads and edits CHANGELOG.md. `python -m tools.release.news` moves the news of docs/news into it.

Each change brings a small file of its own, so two branches never meet in the same lines of the changelog.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
FOLDER, CHANGELOG = ROOT / "docs" / "news", ROOT / "CHANGELOG.md"
# How a file begins: `runs.one-line-a-run.md` goes below "Runs and the launcher". The changelog has them in this order.
SECTIONS: Mapping[str, str] = {
    "moving": "When you come from an earlier release",
    "stacks": "Stack files, `check` and `plan`",
    "access": "Access and network",
    "oci": "On OCI",
    "runs": "Runs and the launcher",
    "images": "Images",
    "local-cloud": "The local cloud",
    "rehearsals": "Rehearsals",
    "safety": "Safety of what others wrote",
    "project": "Releases and first steps",
}
_MOVING = "When you come from"
_WIDTH = 120
_COMMENT = re.compile(r"\A<!--.*?-->\n+", re.DOTALL)
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


@dataclass(frozen=True, slots=True)
class Fragment:
    """One change: `text` is an item of the changelog without its hyphen."""

    path: Path
    section: str
    text: str


def read_fragments() -> list[Fragment]:
    """The fragments, in the order of their names. README.md is not one of them."""
    fragments = []
    for path in sorted(path for path in FOLDER.glob("*") if path.name != "README.md"):
        section, _, rest = path.name.partition(".")
        if section not in SECTIONS or not re.fullmatch(r"[a-z0-9-]+\.md", rest):
            raise NotesError(f"docs/news/{path.name}: name it SECTION.WHAT.md; sections are {', '.join(SECTIONS)}")
        text = _COMMENT.sub("", path.read_text("utf-8")).strip()
        lines = text.splitlines()
        if not lines or any(not line.strip() for line in lines) or lines[0].startswith(("-", "#")):
            raise NotesError(f"docs/news/{path.name}: write one paragraph, without a heading and without a hyphen")
        fragments.append(Fragment(path, section, text))
    return fragments


def with_news(changelog: str, version: str, fragments: Iterable[Fragment]) -> str:
    """The changelog with an item for each fragment, last in its section of the release that comes next."""
    fragments = list(fragments)
    if not fragments:
        return changelog
    changelog = _with_heading(changelog, version)
    part = read_notes(changelog, version).text
    renewed = part.rstrip("\n")
    for fragment in fragments:
        renewed = _with_item(renewed, fragment)
    return changelog.replace(part.rstrip("\n"), renewed, 1)


def _with_heading(changelog: str, version: str) -> str:
    """A changelog that begins with an earlier release gets a part for the next one."""
    first = re.search(r"^## (\S+), (.+)$", changelog, re.MULTILINE)
    if first is None or first[1] != version:
        heading = f"## {version}, {UNRELEASED}\n\n"
        return changelog[: first.start()] + heading + changelog[first.start() :] if first else changelog + heading
    if first[2] != UNRELEASED:
        raise NotesError(f"{version} is released: set catalog/version.py to the next version first")
    return changelog


def _with_item(part: str, fragment: Fragment) -> str:
    words = " ".join(fragment.text.split())
    item = textwrap.fill(
        words, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    headings = [(match.start(), match[1]) for match in re.finditer(r"^### (.+)$", part, re.MULTILINE)]
    ends = [start for start, _ in headings[1:]] + [len(part)]
    order = list(SECTIONS)
    place = order.index(fragment.section)
    for (_, heading), end in zip(headings, ends, strict=False):
        if _section_of(heading) == fragment.section:
            return _join_parts(part[:end].rstrip(), "\n", item, part[end:])
    after = [start for start, heading in headings if _place_of_section(heading, order) > place]
    end = min(after, default=len(part))
    return _join_parts(part[:end].rstrip(), "\n\n", f"### {SECTIONS[fragment.section]}\n\n{item}", part[end:])


def _join_parts(before: str, between: str, new: str, rest: str) -> str:
    return before + between + new + ("\n\n" + rest if rest else "")


def _section_of(heading: str) -> str | None:
    if heading.startswith(_MOVING):
        return "moving"
    return next((name for name, text in SECTIONS.items() if text == heading), None)


def _place_of_section(heading: str, order: Sequence[str]) -> int:
    section = _section_of(heading)
    return order.index(section) if section else len(order)


def main() -> int:
    try:
        fragments = read_fragments()
        renewed = with_news(CHANGELOG.read_text("utf-8"), VERSION, fragments)
    except (NotesError, OSError) as error:
        print(f"trainyard: CHANGELOG.md stays as it is: {error}", file=sys.stderr)
        return 1
    CHANGELOG.write_text(renewed, "utf-8")
    for fragment in fragments:
        fragment.path.unlink()
    print(f"{len(fragments)} of docs/news moved into CHANGELOG.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
