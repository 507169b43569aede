# SPDX-License-Identifier: Apache-2.0
"""Escapes text of other people or programs for terminals, logs and JSON (docs/decisions/0014).

Stack files, logs, status objects, file names and messages of other programs may come from a stranger. A terminal obeys
control characters, and a workflow's runner obeys lines that begin with `::`. It is in the launcher because the launcher
ships alone, and every room may import it. So each function exists once. What only commands write is in
`trainyard/markup.py`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

MASK = "****"
# `scheme://user:password@host`, and `https://token@host`.
_IN_URL = (re.compile(r"(://[^/\s:@]*:)([^/\s]+)(?=@)"), re.compile(r"(\bhttps?://)([^/\s:@]+)(?=@)", re.IGNORECASE))
# Commands to a workflow's runner: `##[` anywhere in a line, or `::` at its beginning, after blanks.
_ANYWHERE, _AT_BEGINNING = re.compile(r"##(?=\[)"), re.compile(r"^(\s*:)(?=:)")


def terminal_line(text: str) -> str:
    """One line for a terminal or a log: no control character, no break, no password of a URL."""
    shown = (letter if letter.isprintable() else "\ufffd" for letter in without_passwords(text).expandtabs(4))
    return _ANYWHERE.sub("## ", "".join(shown))


def terminal_lines(text: str) -> str:
    """The same for several lines. None of them is a command to a workflow's runner."""
    return "\n".join(_AT_BEGINNING.sub(r"\1 ", terminal_line(line)) for line in text.split("\n"))


def escape_json(text: str) -> str:
    """JSON whose strings are not commands to a workflow's runner. Its value stays the same."""
    return _ANYWHERE.sub(r"#\\u0023", text)


def passwords_in_urls(text: str) -> set[str]:
    """The passwords in URLs, both as they are written there and decoded."""
    found = {password for pattern in _IN_URL for _, password in pattern.findall(text)}
    return found | set(map(unquote, found))


def without_passwords(text: str) -> str:
    """The text with the passwords and tokens of URLs masked. User names stay."""
    for pattern in _IN_URL:
        text = pattern.sub(rf"\1{MASK}", text)
    return text
