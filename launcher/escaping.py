# SPDX-License-Identifier: Apache-2.0
"""What somebody else wrote, made harmless: one function for each reader (docs/decisions/0014).

Stack files, logs, status objects, file names and messages of other programs may come from a stranger. A terminal obeys
control characters, Markdown and SARIF have markup, and a workflow's runner obeys lines that begin with `::`.
It stands in the launcher, which ships alone, so that there is one of each: every room may import this module.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

MASK = "****"
# `scheme://user:password@host`, and `https://token@host`.
_IN_URL = (re.compile(r"(://[^/\s:@]*:)([^/\s]+)(?=@)"), re.compile(r"(\bhttps?://)([^/\s:@]+)(?=@)", re.IGNORECASE))
# Orders to a runner of workflows: one kind stands anywhere, the other at a line's beginning, blanks left out.
_ANYWHERE, _AT_BEGINNING = re.compile(r"##(?=\[)"), re.compile(r"^(\s*:)(?=:)")
_MARKUP = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|^[-+=#](?=[\s=#-])|(?<=^\d)[.)](?=\s)")
_LINK = re.compile(r":(?=//)|(?<=\bwww)\.", re.IGNORECASE)
# GitHub tells the people and threads that a text names. What stands between is not seen.
_MENTION = re.compile(r"@|#(?=\d)")
_NOTHING_WIDE = "&#8203;"


def terminal(text: str) -> str:
    """One line for a terminal or a log: no control character, no break, no password of a URL."""
    shown = (letter if letter.isprintable() else "\ufffd" for letter in without_passwords(text).expandtabs(4))
    return _ANYWHERE.sub("## ", "".join(shown))


def terminal_lines(text: str) -> str:
    """The same for several lines. None of them is an order to the runner of a workflow."""
    return "\n".join(_AT_BEGINNING.sub(r"\1 ", terminal(line)) for line in text.split("\n"))


def json_text(text: str) -> str:
    """JSON whose strings a runner of workflows does not take for orders; it stays the same JSON."""
    return _ANYWHERE.sub(r"#\\u0023", text)


def markdown(text: str) -> str:
    """A piece of a line, or a cell of a table: shown as it is written, and nothing else."""
    from html import escape  # the launcher, which must stay small, has no Markdown

    escaped = _MARKUP.sub(r"\\\g<0>", escape(" ".join(terminal(_spaced(text)).split()), quote=False))
    escaped = _MENTION.sub(rf"\g<0>{_NOTHING_WIDE}", escaped)
    return _LINK.sub(lambda found: f"&#{ord(found[0])};", escaped)


def mermaid(text: str) -> str:
    """The text of a quoted label in a Mermaid drawing, which stands in Markdown: letters, digits and little else."""
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
    """Those in URLs, as they stand there and as a program may print them."""
    found = {password for pattern in _IN_URL for _, password in pattern.findall(text)}
    return found | set(map(unquote, found))


def without_passwords(text: str) -> str:
    """URLs keep their user's name, but neither password nor token."""
    for pattern in _IN_URL:
        text = pattern.sub(rf"\1{MASK}", text)
    return text


def _spaced(text: str) -> str:
    return re.sub(r"[\t\r\n]+", " ", text)
