# SPDX-License-Identifier: Apache-2.0
"""Changes parts of a shell script that somebody else wrote, each as the quotes around it ask for. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

Quote = Literal["", "'", '"']
# `$NAME` in braces, where no operator stands beside the name.
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}(?=(.?))", re.DOTALL)
# What the launcher would take for a placeholder, such as `{print}` of awk.
_LIKE_PLACEHOLDER = re.compile(r"\{(?=[a-z_]+(?:[.:][A-Za-z0-9_.:-]+)?\})")


def replace_in_shell(text: str, pattern: re.Pattern[str], written: Callable[[re.Match[str], Quote], str]) -> str:
    """The script with each match replaced by what `written` makes of it. Matches begin outside of one another."""
    parts, end = list[str](), 0
    quotes = list(_quotes_around(text))
    for match in pattern.finditer(text):
        parts += [text[end : match.start()], written(match, quotes[match.start()])]
        end = match.end()
    return "".join([*parts, text[end:]])


def read_variable(name: str, quote: Quote) -> str:
    """Reads a variable as one word, inside of these quotes."""
    return {"": f'"${{{name}}}"', '"': f"${{{name}}}", "'": f"'\"${{{name}}}\"'"}[quote]


def without_braces(text: str) -> str:
    """The same script, without what a stack takes for references and the launcher for placeholders."""

    def unbraced(match: re.Match[str], quote: Quote) -> str:
        if quote == "'":
            # In quotes it is no variable here, but one of the shell that gets the text.
            return f"$''{match[0][1:]}"
        follows = match[2]
        return f"${match[1]}" + ('""' if follows.isalnum() or follows in ("_", "[") else "")

    text = replace_in_shell(text, _BRACED, unbraced)
    return replace_in_shell(text, _LIKE_PLACEHOLDER, lambda match, quote: "{''" if quote == "'" else '{""')


def _quotes_around(text: str) -> Iterator[Quote]:
    """The quotes in which each character stands."""
    quote: Quote = ""
    escaped = comment = False
    for place, letter in enumerate(text):
        yield quote
        if comment or escaped:
            comment, escaped = comment and letter != "\n", False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif letter == "#" and not quote and (not place or text[place - 1].isspace()):
            comment = True
        elif letter in ("'", '"'):
            if not quote:
                quote = "'" if letter == "'" else '"'
            elif letter == quote:
                quote = ""
