# SPDX-License-Identifier: Apache-2.0
"""`python -m tools.release [FOLDER]`: writes the archive, its part of the changelog, and the checksums of both.

git packs the archive from the last commit, so a release of the same commit always has the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from catalog.version import VERSION
from tools.release.news import Notes, NotesError, read_fragments, read_notes, with_news

ROOT = Path(__file__).resolve().parents[2]
# Every release has the same folder, because stacks of teams have paths into it (docs/your-repository.md).
PREFIX = "trainyard/"
SUMS = "SHA256SUMS"


class ReleaseError(Exception):
    """A release cannot be made. The message says what to do first."""


def main(arguments: Sequence[str]) -> int:
    into = Path(arguments[0]) if arguments else ROOT / "dist"
    try:
        files = make_release(into)
    except (ReleaseError, NotesError, OSError) as error:
        print(f"trainyard: no release was made: {error}", file=sys.stderr)
        return 1
    for file in files:
        print(file)
    return 0


def make_release(into: Path) -> list[Path]:
    """Writes all files of the release and returns them, the checksums last. Existing files are replaced."""
    if not (ROOT / ".git").exists():
        raise ReleaseError("this is not a git checkout, and the archive is made by git")
    changed = _git_of_release("status", "--porcelain").decode(errors="replace").splitlines()
    if changed:
        raise ReleaseError(f"`git status` shows changes, the first is {changed[0].strip()!r}: commit or stash them")
    commit = _git_of_release("rev-parse", "HEAD").decode().strip()
    notes = _release_notes()
    # An unreleased version has the commit in its name, so that it is not taken for the release.
    name = f"trainyard-{VERSION}" if notes.released else f"trainyard-{VERSION}-preview-{commit[:10]}"
    archive = gzip.compress(_git_of_release("archive", "--format=tar", f"--prefix={PREFIX}", commit), mtime=0)
    contents = {f"{name}.tar.gz": archive, f"{name}.md": notes.text.encode()}
    # As `sha256sum --check` reads them.
    contents[SUMS] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {file}\n" for file, content in contents.items()
    ).encode()
    into.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        draft = into / f"{file}.new"
        draft.write_bytes(content)
        draft.replace(into / file)
    return [into / file for file in contents]


def _release_notes() -> Notes:
    """The notes, with news that are not in the changelog yet: a preview has them too."""
    changelog, fragments = (ROOT / "CHANGELOG.md").read_text(), read_fragments()
    notes = read_notes(changelog, VERSION)
    if notes.released and fragments:
        raise ReleaseError(
            f"docs/news/{fragments[0].path.name} is not in CHANGELOG.md: give it no date before "
            "`python -m tools.release.news`"
        )
    return read_notes(with_news(changelog, VERSION, fragments), VERSION)


def _git_of_release(*words: str) -> bytes:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        raise ReleaseError("git is not installed") from None
    if done.returncode:
        raise ReleaseError(f"`git {words[0]}` failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
