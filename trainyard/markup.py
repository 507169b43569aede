# SPDX-License-Identifier: Apache-2.0
"""Escapes text of other people or programs for what commands write: Markdown, Mermaid, SARIF, commands of a workflow
(docs/decisions/0014). Tokens are masked, because escaping could hide them from who masks the whole."""

from __future__ import annotations

import re
from html import escape

from catalog.secret_looks import without_tokens
from launcher.escaping import terminal_line

_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|^[-+=#](?=[\s=#-])|(?<=^\d)[.)](?=\s)")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)
# GitHub and GitLab notify the people and threads that a text mentions. An invisible character prevents that.
_MENTION = re.compile(r"@|[#!%](?=\d)|&amp;(?=\d)|(?i:(?<=\bGH)-(?=\d))")
_NOTHING_WIDE = "&#8203;"


def escape_markdown(text: str) -> str:
    """Part of a line, or a cell of a table, that Markdown shows literally."""
    escaped = _MARKUP.sub(r"\\\g<0>", escape(_on_one_line(text), quote=False))
    escaped = _MENTION.sub(rf"\g<0>{_NOTHING_WIDE}", escaped)
    return _LINK.sub(lambda found: f"&#{ord(found[0])};", escaped)


def escape_mermaid(text: str) -> str:
    """The text of a quoted label in a Mermaid drawing within Markdown: letters, digits and few other characters."""
    return "".join(
        letter if letter.isalnum() or letter in " .,/:-" else f"#{ord(letter)};" for letter in _on_one_line(text)
    )


def escape_sarif(text: str) -> str:
    """A message of SARIF 2.1.0, in which square brackets are links."""
    return re.sub(r"([\\\[\]])", r"\\\1", terminal_line(_with_plain_spaces(without_tokens(text))))


def escape_annotation(text: str, of_property: bool = False) -> str:
    """The text of a workflow command, or the value of one of its properties."""
    text = "\n".join(map(terminal_line, without_tokens(text).split("\n")))
    for letter in "%\r\n" + ":," * of_property:
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def _on_one_line(text: str) -> str:
    return " ".join(terminal_line(_with_plain_spaces(without_tokens(text))).split())


def _with_plain_spaces(text: str) -> str:
    return re.sub(r"[\t\r\n]+", " ", text)
