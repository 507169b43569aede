# SPDX-License-Identifier: Apache-2.0
"""Escapes text of other people or programs: one function for each kind of reader (docs/decisions/0014).

Stack files, logs, status objects, file names and messages of other programs may come from a stranger. A terminal obeys
control characters, Markdown and SARIF have markup, and a workflow's runner obeys lines that begin with `::`.
It is in the launcher because the launcher ships alone, and every room may import it. So each function exists once.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

MASK = "****"
# `scheme://user:password@host`, and `https://token@host`.
_IN_URL = (re.compile(r"(://[^/\s:@]*:)([^/\s]+)(?=@)"), re.compile(r"(\bhttps?://)([^/\s:@]+)(?=@)", re.IGNORECASE))
# Commands to a workflow's runner: `##[` anywhere in a line, or `::` at its beginning, after blanks.
_ANYWHERE, _AT_BEGINNING = re.compile(r"##(?=\[)"), re.compile(r"^(\s*:)(?=:)")
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|^[-+=#](?=[\s=#-])|(?<=^\d)[.)](?=\s)")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)
# GitHub notifies the people and threads that a text mentions. An invisible character prevents that.
_MENTION = re.compile(r"@|#(?=\d)")
_NOTHING_WIDE = "&#8203;"


def terminal(text: str) -> str:
    """One line for a terminal or a log: no control character, no break, no password of a URL."""
    shown = (letter if letter.isprintable() else "\ufffd" for letter in without_passwords(text).expandtabs(4))
    return _ANYWHERE.sub("## ", "".join(shown))


def terminal_lines(text: str) -> str:
    """The same for several lines. None of them is a command to a workflow's runner."""
    return "\n".join(_AT_BEGINNING.sub(r"\1 ", terminal(line)) for line in text.split("\n"))


def json_text(text: str) -> str:
    """JSON whose strings are not commands to a workflow's runner. Its value stays the same."""
    return _ANYWHERE.sub(r"#\\u0023", text)


def markdown(text: str) -> str:
    """Part of a line, or a cell of a table, that Markdown shows literally."""
    from html import escape  # the launcher, which must stay small, has no Markdown

    escaped = _MARKUP.sub(r"\\\g<0>", escape(" ".join(terminal(_spaced(text)).split()), quote=False))
    escaped = _MENTION.sub(rf"\g<0>{_NOTHING_WIDE}", escaped)
    return _LINK.sub(lambda found: f"&#{ord(found[0])};", escaped)


def mermaid(text: str) -> str:
    """The text of a quoted label in a Mermaid drawing within Markdown: letters, digits and few other characters."""
    letters = " ".join(terminal(_spaced(text)).split())
    return "".join(one if one.isalnum() or one in " .,/:-" else f"#{ord(one)};" for one in letters)


def sarif(text: str) -> str:
    """A message of SARIF 2.1.0, in which square brackets are links."""
    return re.sub(r"([\\\[\]])", r"\\\1", terminal(_spaced(text)))


def annotation(text: str, of_property: bool = False) -> str:
    """The text of a workflow command, or the value of one of its properties."""
    text = "\n".join(map(terminal, text.split("\n")))
    for letter in "%\r\n" + ":," * of_property:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def passwords(text: str) -> set[str]:
    """The passwords in URLs, both as they are written there and decoded."""
    found = {password for pattern in _IN_URL for _, password in pattern.findall(text)}
    return found | set(map(unquote, found))


def without_passwords(text: str) -> str:
    """The text with the passwords and tokens of URLs masked. User names stay."""
    for pattern in _IN_URL:
        text = pattern.sub(rf"\1{MASK}", text)
    return text


def _spaced(text: str) -> str:
    return re.sub(r"[\t\r\n]+", " ", text)
