# SPDX-License-Identifier: Apache-2.0
"""Texts with tags `<% … %>`, as a cluster's REST server reads them: mustache 2.3, by `render` of
rest-server/src/middlewares/v2/protocol.js (v1.8.0)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_OPENS = re.compile(r"<%\s*")
_CLOSES, _CLOSES_CURLY = re.compile(r"\s*%>"), re.compile(r"\s*}\s*%>")
_KIND = re.compile(r"[#^/>{&=!]")
_SPACE = re.compile(r"\s*")
_INDEX = re.compile(r"\[(\d+)\]")
# The kinds of tags that leave a line to its text: any other tag takes an otherwise empty line away.
_SHOWN = ("", "{", "&")


class TemplateError(ValueError):
    """A text that mustache cannot read: the REST server answers 500 to the job."""


@dataclass
class _Reader:
    text: str
    at: int = 0
    # Pieces of the text: letters as they are, and what names refer to. Sections hide their content.
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


def render(text: str, fill: Callable[[str], str | None]) -> str:
    """The text with its names filled in. `fill` returns None for what there is none of: that tag stays."""
    reader = _Reader(text)
    while found := _OPENS.search(text, reader.at):
        reader.letters(text[reader.at : found.start()])
        reader.at = found.start()
        reader.tag(fill)
    reader.letters(text[reader.at :])
    if reader.sections:
        raise TemplateError(f"the section `{reader.sections[-1][:60]}` is not closed")
    return "".join(reader.pieces).strip()
