# SPDX-License-Identifier: Apache-2.0
"""The parts of what a stack's jobs run: each value of the stack file below a path, with what other files add to it.

Defaults are written out, and lists of mappings are keyed by their names, so that another spelling of the same stack
gives the same parts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import PurePosixPath
from typing import Any

from catalog.secret_looks import gives_secret, looks_secret, names_secret, without_tokens
from components.platform.review import SECRET
from launcher.escaping import MASK, without_passwords
from schemas.convert import camel_case, default_of
from schemas.judge import Judged
from schemas.load import NAMESPACE
from schemas.model import Secret, Was
from schemas.name_suggestions import count_noun
from schemas.scalars import secrets_in

PartPath = tuple[str, ...]
_HIDDEN = "(not shown: it looks like a secret)"
_ENCRYPTED = "a secret"
_WORDS = re.compile(r"(\s+)")
# Parts of a job that are paths: `./train/` and `train` are the same.
_PATHS = frozenset({("code", "folder"), ("requirements", "file")})


@dataclass(frozen=True, slots=True)
class RunPart:
    """`shown`: for people, without secrets. `compared`: what decides whether it changed. `is_default`: the stack file
    need not write it."""

    shown: str
    compared: str
    is_default: bool = False


Parts = Mapping[PartPath, RunPart]


class StackFileParts:
    """The parts of a stack file without errors."""

    def __init__(self, judged: Judged) -> None:
        if judged.stack is None:
            raise ValueError("a stack file that cannot be read has no parts")
        self.stack, self.folder, self._facts = judged.stack, judged.folder, judged.facts
        config = judged.source.data.get("config") if isinstance(judged.source.data, Mapping) else None
        # The model has secrets without their texts.
        self._encrypted = {
            (str(key).removeprefix(NAMESPACE), *map(str, path)): text for (key, *path), text in secrets_in(config)
        }

    def of_stack(self) -> Parts:
        """All without those of jobs. The stack's own frameworks are there with the content of their files."""
        parts = self._with_encrypted((), _parts_of(self.stack, (), False, frozenset({"jobs", "frameworks"})))
        for name, framework in self._facts.own_frameworks.items() if self._facts else ():
            parts |= dict(_parts_of(framework.columns, ("frameworks", name), False))
        for name, file in self._facts.texts.items() if self._facts else ():
            parts["files", name] = RunPart(count_noun(len(file.text.splitlines()), "line"), file.text)
        return parts

    def of_job(self, name: str) -> Parts:
        """All without those of its runs, and with the packages of its requirements."""
        job = self.stack.jobs[name].without_written_defaults()
        parts = self._with_encrypted(("jobs", name), _parts_of(job, (), False, frozenset({"roles", "runs"})))
        for role_name, role in job.roles.items():
            # A renamed role is compared with itself.
            found = self._with_encrypted(("jobs", name, "roles", role_name), _item_parts(role, (), False))
            parts |= {("roles", role.was.first(role_name), *path): part for path, part in found.items()}
        parts |= {("receivers", what): _text_part(where) for what, where in job.credential_receivers().items()}
        listed = self._facts.packages.get(name) if self._facts else None
        for line in listed.lines if listed else ():
            path = ("packages", line.name)
            parts[path] = _text_part(f"{parts[path].compared} | {line.text}" if path in parts else line.text)
        return parts

    def of_run(self, job: str, name: str) -> Parts:
        return self._with_encrypted(("jobs", job, "runs", name), _parts_of(self.stack.jobs[job].runs[name], (), False))

    def _with_encrypted(self, above: PartPath, parts: Iterable[tuple[PartPath, RunPart]]) -> dict[PartPath, RunPart]:
        return {
            path: RunPart(_ENCRYPTED, self._encrypted.get((*above, *path), "")) if part.shown == _ENCRYPTED else part
            for path, part in parts
        }


def input_text(value: Any) -> str:
    """A value of a run's inputs for people, without secrets."""
    if value is None:
        return ""
    text = _scalar_text(value)
    return _ENCRYPTED if text.startswith(SECRET) else _text_part(text).shown


def _parts_of(
    value: Any, path: PartPath, is_default: bool, without: frozenset[str] = frozenset()
) -> Iterator[tuple[PartPath, RunPart]]:
    if isinstance(value, Secret):
        yield path, RunPart(_ENCRYPTED, "")
    elif isinstance(value, Was):
        yield from [(path, _text_part(shlex.join(value.names), is_default))] if value.names else []
    elif hasattr(value, "to_shorthand"):
        yield path, _text_part(str(value), is_default)
    elif is_dataclass(value):
        for column in fields(value):
            part = getattr(value, column.name)
            if column.name not in without:
                is_same = is_default or part == default_of(column)
                yield from _parts_of(part, (*path, camel_case(column.name)), is_same)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _item_parts(part, (*path, str(key)), is_default)
    elif isinstance(value, list | tuple):
        yield from _list_parts(value, path, is_default)
    elif value is not None:
        yield path, _scalar_part(path, value, is_default)


def _item_parts(value: Any, path: PartPath, is_default: bool) -> Iterator[tuple[PartPath, RunPart]]:
    """An item that has parts is a part itself, so that it shows if all of its parts are defaults."""
    if is_dataclass(value) and not isinstance(value, Secret) and not hasattr(value, "to_shorthand"):
        yield path, RunPart("", "", is_default)
    yield from _parts_of(value, path, is_default)


def _list_parts(
    value: list[Any] | tuple[Any, ...], path: PartPath, is_default: bool
) -> Iterator[tuple[PartPath, RunPart]]:
    if not any(is_dataclass(item) or isinstance(item, Mapping | list | tuple) for item in value):
        if value:
            texts = [_scalar_text(item) for item in value]
            yield (
                path,
                RunPart(
                    shlex.join(_hide_secret_words(list(map(without_tokens, texts)))), shlex.join(texts), is_default
                ),
            )
        return
    taken: dict[str, int] = {}
    for number, item in enumerate(value, 1):
        first = getattr(item, "name", None) or getattr(item, fields(item)[0].name) if is_dataclass(item) else number
        taken[str(first)] = taken.get(str(first), 0) + 1
        key = str(first) if taken[str(first)] == 1 else f"{first} ({taken[str(first)]})"
        yield from _item_parts(item, (*path, key), is_default)


def _scalar_part(path: PartPath, value: Any, is_default: bool) -> RunPart:
    text = _scalar_text(value)
    is_one_word = not _WORDS.search(text)
    if isinstance(value, str) and path and (names_secret(path[-1], text) or (is_one_word and looks_secret(text))):
        return RunPart(_HIDDEN, text, is_default)
    if path in _PATHS:
        return RunPart(_text_part(text).shown, str(PurePosixPath(text)), is_default)
    return _text_part(text, is_default)


def _text_part(text: str, is_default: bool = False) -> RunPart:
    pieces = _WORDS.split(without_tokens(text))
    pieces[::2] = _hide_secret_words(pieces[::2])
    return RunPart("".join(pieces), text, is_default)


def _hide_secret_words(words: list[str]) -> list[str]:
    """The words of a command, without the values that look like secrets: `--token=x`, `--token x`, keys."""
    shown = []
    for word, earlier in zip(words, ["", *words], strict=False):
        name, sign, _ = word.partition("=")
        if sign and gives_secret(word, ""):
            shown.append(f"{name}={MASK}")
        elif (looks_secret(word) and "://" not in word) or ("=" not in earlier and gives_secret(earlier, word)):
            shown.append(MASK)
        else:
            shown.append(without_passwords(word))
    return shown


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, sort_keys=True, default=str)
