# SPDX-License-Identifier: Apache-2.0
"""Clones a run's code from git on each node, if the stack file names a repository. Also has the globs of `keep:`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from launcher.compatibility import unlink_if_there
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError
from launcher.printing import LinePrinter

_SECONDS = 600
_KEY = "repository-key"
_ANY = "**"


def clone_code(launch: Launch, environment: Mapping[str, str], root: Path, say: LinePrinter) -> str:
    """Clones the code and returns its folder; empty if no code comes from git."""
    git = launch.git
    if git is None:
        return ""
    for what, word in (("address", git.url), ("branch", git.branch), ("commit", git.commit)):
        if str(word).startswith("-"):
            raise LaunchError(f"the {what} of the code is `{word}`, which git would take for an option: correct it")
    target = root / "code"
    if target.exists():
        return str(target)
    git_environment = {**environment, "GIT_TERMINAL_PROMPT": "0"}
    if git.secret:
        key_file = root / _KEY
        key = launch.identity.secret(git.secret, say)
        with os.fdopen(os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(key.rstrip() + b"\n")
        ssh = f"ssh -i {key_file} -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o BatchMode=yes"
        git_environment["GIT_SSH_COMMAND"] = ssh
    branch = ["--branch", git.branch] if git.branch else []
    try:
        _run_git(["clone", "--quiet", *branch, "--", git.url, str(target)], git_environment)
    finally:
        unlink_if_there(root / _KEY)
    if git.commit:
        _run_git(["-C", str(target), "checkout", "--quiet", "--detach", git.commit, "--"], git_environment)
    say(f"code of {git.url} cloned" + (f" at {git.commit[:12]}" if git.commit else ""))
    return str(target)


def _run_git(words: list[str], environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            ["git", *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise LaunchError(
            "the code comes from git, and this node has no git: add it to the image, or use `code: FOLDER`"
        ) from None
    except subprocess.TimeoutExpired:
        raise MissingError(f"git {words[0]} took longer than {_SECONDS} s: check that the node can reach it") from None
    if done.returncode:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        raise MissingError(f"the code cannot be cloned from git: {lines[-1] if lines else f'code {done.returncode}'}")


@dataclass(frozen=True)
class Patterns:
    """Globs of files, each split into the parts of its path."""

    patterns: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Patterns:
        return cls(tuple(tuple(part for part in text.split("/") if part not in ("", ".")) for text in texts))

    def match(self, name: str) -> bool:
        """Whether a pattern matches this file."""
        parts = name.split("/")
        return any(_matches_pattern(pattern, parts) for pattern in self.patterns)

    def spell(self, folder: str) -> bool:
        """Whether a pattern contains this folder's name literally, without wildcards."""
        return any(folder in pattern for pattern in self.patterns)


def _matches_pattern(pattern: tuple[str, ...], parts: list[str]) -> bool:
    """Matches a path. Tracks all positions in the pattern at once, so that several `**` take no exponential time."""
    if not pattern:
        return False
    places = _with_skipped(pattern, {0})
    for part in parts:
        if len(pattern) in places:
            return True
        taken = [at for at in places if pattern[at] == _ANY or fnmatchcase(part, pattern[at])]
        steps = {at if pattern[at] == _ANY else at + 1 for at in taken}
        places = _with_skipped(pattern, steps)
    return len(pattern) in places


def _with_skipped(pattern: tuple[str, ...], places: set[int]) -> set[int]:
    """`**` may also stand for no folder at all."""
    every = set(places)
    for at in sorted(places):
        while at < len(pattern) and pattern[at] == _ANY:
            at += 1
            every.add(at)
    return every
