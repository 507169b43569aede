# SPDX-License-Identifier: Apache-2.0
"""Joins a task role's commands into one text for bash, and fills in references, as a cluster does.

Tags `<% … %>` are read as a cluster's REST server reads them: mustache 2.3, by `render` of
rest-server/src/middlewares/v2/protocol.js (v1.8.0).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.openpai.protocol.text import javascript_text

_OPENS = re.compile(r"<%\s*")
_CLOSES, _CLOSES_CURLY = re.compile(r"\s*%>"), re.compile(r"\s*}\s*%>")
_KIND = re.compile(r"[#^/>{&=!]")
_SPACE = re.compile(r"\s*")
_INDEX = re.compile(r"\[(\d+)\]")
# The kinds of tags that print a value. A line with no text but another tag is removed.
_SHOWN = ("", "{", "&")
# `<% $parameters.model %>`, `<% $data.uri[0] %>`
_REFERENCE = re.compile(r"<%\s*\$([^%\s]*)\s*%>")
# A tag as pystache reads it in a task's runtime.
_RUNTIME_TAG = re.compile(r"<%\s*(?:\{\s*(?P<raw>.+?)\s*\}|(?P<kind>[!>&/#^=]?)\s*(?P<name>[\s\S]+?))\s*%>")
# The characters that it writes as HTML does.
ESCAPED = frozenset("&<>\"'")
_PREREQUISITES = ("script", "output", "data")


def task_command(job: Mapping[str, Any], role: str) -> str:
    """The command of a role's tasks (`USER_CMD`). References to secrets are left: each task's runtime fills them in.

    Raises `TemplateError` if the REST server cannot read it.
    """
    scope = _reference_scope(job, role)

    def fill(name: str) -> str | None:
        # The REST server puts `$` before the names that it knows.
        value = looked_up(scope, name.removeprefix("$")) if name.startswith("$") else None
        return None if value is None else javascript_text(value)

    return render_mustache(commands_as_written(job, role), fill)


def commands_as_written(job: Mapping[str, Any], role: str) -> str:
    """The commands of a role's tasks, before their references are filled in."""
    name = job.get("defaults", {}).get("deployment")
    roles = next((row["taskRoles"] for row in job.get("deployments", ()) if row["name"] == name), None)
    own = roles.get(role, {}) if isinstance(roles, Mapping) else {}
    commands = [*own.get("preCommands", ()), *job["taskRoles"][role]["commands"], *own.get("postCommands", ())]
    return "\n".join(one.strip() for one in commands)


def require_readable(text: str) -> None:
    """Raises `TemplateError` if the REST server cannot read a text."""
    render_mustache(text, lambda name: None)


def with_secrets(text: str, secrets: Mapping[str, Any] | None) -> str:
    """A text with references to secrets filled in, as a task's runtime does it in a job with secrets: pystache writes
    values as HTML does, and nothing where it knows no value. Raises `TemplateError` for tags that print no value."""
    if not secrets:
        return text
    scope = {"$secrets": _with_numbered_lists(secrets)}

    def fill(tag: re.Match[str]) -> str:
        if tag["kind"] not in (None, "", "&"):
            raise TemplateError(f"the tag `{tag[0][:60]}` is none that prints a value")
        is_raw = tag["raw"] is not None or tag["kind"] == "&"
        name = tag["raw"] or (tag["name"] if is_raw else _INDEX.sub(r".\1", tag["name"]))
        value: Any = scope
        for step in [] if name == "." else name.split("."):
            value = value.get(step, "") if isinstance(value, Mapping) else ""
        return str(value) if is_raw else html.escape(str(value))

    return _RUNTIME_TAG.sub(fill, text)


def _with_numbered_lists(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_numbered_lists(item) for key, item in value.items()}
    return {str(number): item for number, item in enumerate(value)} if isinstance(value, list) else value


def runtime_text(job: Mapping[str, Any], role: str, text: str) -> str:
    """A text of a runtime plugin with all references filled in, including secrets, as a task's runtime does it."""
    return fill_known_references(text, {**_reference_scope(job, role), "secrets": job.get("secrets") or {}})


def fill_known_references(text: str, scope: Mapping[str, Any]) -> str:
    """Fills in references. Those that are not in the scope are left."""

    def fill(reference: re.Match[str]) -> str:
        value = looked_up(scope, reference[1])
        return reference[0] if value is None else javascript_text(value)

    return _REFERENCE.sub(fill, text)


def references_in(text: str) -> Iterator[str]:
    """The references in a text, such as `parameters.model`."""
    return (reference[1] for reference in _REFERENCE.finditer(text))


def without_references(text: str) -> str:
    return _REFERENCE.sub("", text)


def looked_up(scope: Mapping[str, Any], reference: str) -> Any:
    """The value of `data.uri[0]`, or None."""
    value: Any = scope
    for step in re.sub(r"\[(\d+)\]", r".\1", reference).split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _reference_scope(job: Mapping[str, Any], role: str) -> dict[str, Any]:
    task_role, rows = job["taskRoles"][role], job.get("prerequisites") or ()
    scope = {"parameters": job.get("parameters")}
    for kind in _PREREQUISITES:
        chosen = (row for row in rows if row["type"] == kind and row["name"] == task_role.get(kind))
        scope[kind] = next(chosen, None)
    return scope


class TemplateError(ValueError):
    """A text that mustache cannot read. The REST server responds to such a job with 500."""


def render_mustache(text: str, fill: Callable[[str], str | None]) -> str:
    """The text with its tags filled in. If `fill` returns None, the tag is left."""
    reader = _Reader(text)
    while found := _OPENS.search(text, reader.at):
        reader.letters(text[reader.at : found.start()])
        reader.at = found.start()
        reader.tag(fill)
    reader.letters(text[reader.at :])
    if reader.sections:
        raise TemplateError(f"the section `{reader.sections[-1][:60]}` is not closed")
    return "".join(reader.pieces).strip()


@dataclass
class _Reader:
    text: str
    at: int = 0
    # The text in pieces: plain text, and the values of tags. The content of sections is left out.
    pieces: list[str] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    line: int = 0
    has_tag: bool = False
    has_more: bool = False

    def letters(self, text: str) -> None:
        for letter in text:
            self.has_more |= not letter.isspace()
            self._keep(letter)
            if letter == "\n":
                self.end_line()

    def end_line(self) -> None:
        if self.has_tag and not self.has_more:
            del self.pieces[self.line :]
        self.line, self.has_tag, self.has_more = len(self.pieces), False, False

    def _keep(self, piece: str) -> None:
        if not self.sections:
            self.pieces.append(piece)

    def tag(self, fill: Callable[[str], str | None]) -> None:
        opened = _OPENS.match(self.text, self.at)
        assert opened
        self.has_tag = True
        kind = _KIND.match(self.text, opened.end())
        at = _SPACE.match(self.text, kind.end() if kind else opened.end())
        assert at
        closed = (_CLOSES_CURLY if kind and kind[0] == "{" else _CLOSES).search(self.text, at.end())
        if closed is None:
            raise TemplateError("a tag `<%` is not closed by `%>`")
        name, self.at = self.text[at.end() : closed.start()], closed.end()
        self._act(kind[0] if kind else "", name, fill)

    def _act(self, kind: str, name: str, fill: Callable[[str], str | None]) -> None:
        self.has_more |= kind in _SHOWN
        if kind == "":
            name = _INDEX.sub(r".\1", name)
            value = fill(name)
            self._keep(f"<% {name} %>" if value is None else value)
        elif kind in "#^":
            self.sections.append(name)
        elif kind == "/":
            if not self.sections or self.sections.pop() != name:
                raise TemplateError(f"`<%/ {name[:60]} %>` closes a section that is not open")
        elif kind == "=":
            raise TemplateError("`<%=` would set other tags")
