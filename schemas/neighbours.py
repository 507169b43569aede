# SPDX-License-Identifier: Apache-2.0
"""The other stack files in the folder of a checked one. Only the few that can matter are parsed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from schemas.judge import Judged
from schemas.load import load_file, stack_name
from schemas.model import Stack
from schemas.source import MAXIMUM_BYTES

_FILES = "Pulumi.*.yaml"
_PROJECT = re.compile(r"^name:[ \t]*[\"']?([\w.-]+)", re.MULTILINE)
PROJECT = "trainyard"

# Texts that must all be in a file for it to matter.
_Hint = tuple[str, ...]


def find_neighbours(files: Sequence[Path], judged: Sequence[Judged]) -> list[Judged]:
    """Stacks in the same folders that may clash with the checked ones, or that these use. Broken files are left out."""
    near: list[Judged] = []
    for folder in dict.fromkeys(file.parent for file in files if file.match(_FILES)):
        stacks = [one.stack for file, one in zip(files, judged, strict=True) if file.parent == folder and one.stack]
        if stacks:
            texts = dict(_texts(folder, {file.name for file in files if file.parent == folder}))
            near += [*_used(stacks, texts), *_like(stacks, texts)]
    return near


def names_in(folder: Path) -> list[str]:
    """The names of the stacks in a folder."""
    return sorted(map(stack_name, folder.glob(_FILES)))


def project_of(folder: Path) -> str:
    """The project's name from Pulumi.yaml, which is in the folder of the stack files or in its parent."""
    for file in (folder / "Pulumi.yaml", folder.parent / "Pulumi.yaml"):
        if named := _PROJECT.search(_text(file)):
            return named[1]
    return PROJECT


def _used(stacks: Sequence[Stack], texts: dict[Path, str]) -> Iterator[Judged]:
    """The stacks that these use, and the ones that those use in turn."""
    files = {stack_name(file): file for file in texts}
    wanted = [stack.uses.stack for stack in stacks if stack.uses]
    for name in wanted:
        file = files.get(name.rpartition("/")[2])
        if file in texts and (one := _loaded(file, texts)):
            yield one
            wanted += [one.stack.uses.stack] if one.stack and one.stack.uses else []


def _like(stacks: Sequence[Stack], texts: dict[Path, str]) -> Iterator[Judged]:
    """The stacks whose files hold the name of something that one of these makes."""
    hints = {hint for stack in stacks for hint in _hints(stack)}
    for file in [file for file, text in texts.items() if any(all(word in text for word in hint) for hint in hints)]:
        if one := _loaded(file, texts):
            yield one


def _hints(stack: Stack) -> Iterator[_Hint]:
    """A file holds a name as it is, or the team and the environment that it is built from."""
    bucket, repository = stack.bucket.name or "", stack.registry.repository or ""
    yield from ((name,) for name in (bucket, repository, stack.network.inside) if name)
    names = f"{stack.team}-{stack.environment}"
    yield from ((f"{names}-training",), (f"{stack.team}/{stack.environment}/training",))
    for text, mark in (
        (names, "-"),
        (bucket.removesuffix("-training"), "-"),
        (repository.removesuffix("/training"), "/"),
    ):
        words = text.split(mark)
        yield from ((mark.join(words[:end]), mark.join(words[end:])) for end in range(1, len(words)))


def _loaded(file: Path, texts: dict[Path, str]) -> Judged | None:
    """Loads a file once: this also removes it from the texts."""
    del texts[file]
    loaded = load_file(file)
    return Judged(loaded.stack, None, (), loaded.source, loaded.folder) if loaded.stack else None


def _texts(folder: Path, checked: Collection[str]) -> Iterator[tuple[Path, str]]:
    for file in sorted(folder.glob(_FILES)):
        if file.name not in checked and (text := _text(file)):
            yield file, text


def _text(file: Path) -> str:
    """The file's text, empty if it cannot be read: a neighbour must not make a check fail."""
    try:
        return file.read_text("utf-8") if file.is_file() and file.stat().st_size <= MAXIMUM_BYTES else ""
    except (OSError, ValueError):
        return ""
