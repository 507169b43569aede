# SPDX-License-Identifier: Apache-2.0
"""News fragments: each becomes an item of its section, and a release removes all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.version import VERSION
from tools.release import __main__ as release
from tools.release import news
from tools.release.news import SECTIONS, Fragment, NotesError, read_fragments, with_news

CHANGELOG = """# Changelog

## 0.2.0, unreleased

### When you come from 0.1.0

- Move.

### Runs and the launcher

- Old
  item.

### Releases and first steps

- Last.

## 0.1.0, 2026-01-01

### Runs and the launcher

- First.
"""


def fragment(section: str, text: str = "New `thing`.") -> Fragment:
    return Fragment(Path(f"{section}.x.md"), section, text)


def test_a_fragment_is_the_last_item_of_its_section_in_the_release_that_comes_next() -> None:
    made = with_news(CHANGELOG, "0.2.0", [fragment("runs"), fragment("project", "word " * 40), fragment("moving", "M")])
    assert "- Old\n  item.\n- New `thing`.\n\n### Releases" in made
    assert "- Move.\n- M\n\n### Runs" in made
    assert max(map(len, made.splitlines())) <= 120
    assert made.endswith(CHANGELOG[CHANGELOG.index("\n## 0.1.0") :])
    assert "  word word" in made[made.index("- Last.") : made.index("## 0.1.0")]


def test_a_section_that_is_missing_gets_its_place() -> None:
    made = with_news(CHANGELOG, "0.2.0", [fragment("images"), fragment("images", "Two."), fragment("stacks")])
    part = made[: made.index("## 0.1.0")]
    headings = [line[4:] for line in part.splitlines() if line.startswith("### ")]
    assert headings == [
        "When you come from 0.1.0", SECTIONS["stacks"], SECTIONS["runs"], SECTIONS["images"], SECTIONS["project"]
    ]  # fmt: skip
    assert "\n\n- New `thing`.\n- Two.\n\n### Releases" in part


def test_the_first_news_of_the_next_version_begin_its_part() -> None:
    made = with_news(CHANGELOG.replace("unreleased", "2026-05-31"), "0.3.0", [fragment("runs")])
    assert made.startswith(
        "# Changelog\n\n## 0.3.0, unreleased\n\n### Runs and the launcher\n\n- New `thing`.\n\n## 0.2.0, 2026-05-31\n"
    )
    with pytest.raises(NotesError, match=r"0\.2\.0 is released"):
        with_news(CHANGELOG.replace("unreleased", "2026-05-31"), "0.2.0", [fragment("runs")])


def test_without_news_the_changelog_stays() -> None:
    assert with_news(CHANGELOG, "9.9.9", []) == CHANGELOG


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("sweep.x.md", "New.", "sections are"), ("runs.md", "New.", "SECTION.WHAT.md"), ("runs.x.txt", "New.", "WHAT"),
        ("runs.x.md", "\n", "one paragraph"), ("runs.x.md", "- New.", "hyphen"), ("runs.x.md", "a\n\nb", "paragraph"),
    ],
)  # fmt: skip
def test_a_fragment_without_a_section_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, words: str
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(news, "FOLDER", tmp_path)
    with pytest.raises(NotesError, match=words):
        read_fragments()


def test_the_fragments_of_this_checkout_fit_into_its_changelog() -> None:
    changelog = news.CHANGELOG.read_text("utf-8")
    fragments = read_fragments()
    made = with_news(changelog, VERSION, fragments)
    assert made.count("\n- ") == changelog.count("\n- ") + len(fragments)


def test_news_move_into_the_changelog_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changelog, folder = tmp_path / "CHANGELOG.md", tmp_path / "news"
    folder.mkdir()
    changelog.write_text(CHANGELOG.replace("0.2.0", VERSION))
    (folder / "README.md").write_text("# News\n")
    (folder / "runs.x.md").write_text("<!-- SPDX-License-Identifier: Apache-2.0 -->\nNew\n`thing`.\n")
    monkeypatch.setattr(news, "CHANGELOG", changelog)
    monkeypatch.setattr(news, "FOLDER", folder)
    assert news.main() == 0
    assert "- New `thing`.\n" in changelog.read_text()
    assert [path.name for path in folder.iterdir()] == ["README.md"]
    again = changelog.read_text()
    assert news.main() == 0
    assert changelog.read_text() == again


def test_a_dated_release_leaves_no_news_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "read_fragments", lambda: [fragment("runs")])
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("0.2.0", VERSION))
    assert "- New `thing`." in release._release_notes().text, "a preview's notes have them"
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("0.2.0, unreleased", f"{VERSION}, 2026-05-31"))
    with pytest.raises(release.ReleaseError, match=r"runs\.x\.md"):
        release._release_notes()
