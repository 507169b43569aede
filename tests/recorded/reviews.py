# SPDX-License-Identifier: Apache-2.0
"""Recorded reviews: for each round, the stack files of both sides, and what `trainyard review` printed about them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from catalog.version import VERSION
from tests.support.examples import STACKS
from tests.support.review_examples import git

REVIEWS = Path(__file__).parent / "reviews"
FORMS = ("review.json", "review.md", "review.sarif")


def rounds() -> list[str]:
    return sorted(folder.name for folder in REVIEWS.iterdir())


def recorded_reviews(name: str) -> dict[str, str]:
    return {form: (REVIEWS / name / form).read_text("utf-8") for form in FORMS}


def review_round(name: str) -> dict[str, str]:
    """The output of one command for all stacks of a round, by the name of its file."""
    with tempfile.TemporaryDirectory(prefix="trainyard-recorded-") as place:
        folder = Path(place)
        shutil.copytree(STACKS / "examples", folder / "stacks" / "examples")
        git(folder, "init", "-q")
        commits = {side: _commit_side(folder, REVIEWS / name / side, side) for side in ("before", "after")}
        words = ["--all", "--stacks", "stacks", "--against", "HEAD~1", "--on", "2026-11-26"]
        outputs = [word for form in FORMS for word in ("--output", form)]
        command = [sys.executable, "-m", "trainyard", "review", *words, *outputs]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return {form: _without_circumstances((folder / form).read_text("utf-8"), commits) for form in FORMS}


def _commit_side(folder: Path, side: Path, name: str) -> str:
    for file in (folder / "stacks").glob("*.yaml"):
        file.unlink()
    for file in side.glob("*.yaml"):
        shutil.copy(file, folder / "stacks")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", name)
    words = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def _without_circumstances(text: str, commits: Mapping[str, str]) -> str:
    """The text without this repository's commits and this release's version. Nothing else may differ."""
    for side, commit in commits.items():
        text = text.replace(commit, f"commit-{side}")
    return text.replace(f'"semanticVersion": "{VERSION}"', '"semanticVersion": "(this release)"')


def differences(name: str) -> str:
    """The differences from the recorded reviews as a diff. Empty if every byte is the same."""
    recorded, now = recorded_reviews(name), review_round(name)
    return "\n".join(
        line
        for form in FORMS
        for line in unified_diff(recorded[form].splitlines(), now[form].splitlines(), f"recorded/{name}/{form}", "now")
        if recorded[form] != now[form]
    )


def renew_round(name: str) -> None:
    for form, text in review_round(name).items():
        (REVIEWS / name / form).write_text(text, "utf-8")
