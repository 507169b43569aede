# SPDX-License-Identifier: Apache-2.0
"""Changes parts of a shell script that somebody else wrote, each as the quotes around it ask for. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal

from catalog.secret_looks import gives_secret, looks_secret

_WORD = re.compile(r"[^\s;|&()<>]+")
_NO_NAME = re.compile(r"[^A-Z0-9]+")
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


def replace_secrets(text: str) -> tuple[str, list[str]]:
    """The script with a variable in place of each secret in plain text, and the names of these variables."""
    parts, end, names = list[str](), 0, list[str]()
    words = list(_WORD.finditer(text))
    quotes = list(_quotes_around(text)) if words else []
    before = ""
    for match in words:
        word = match[0]
        bare = word.strip("\"'")
        if bare == "%":
            # Of a template of OpenPAI.
            continue
        name, joined, value = bare.partition("=")
        start = match.start()
        if joined and value and gives_secret(bare, ""):
            start = text.index("=", start) + 1
        elif before and gives_secret(before, bare):
            name = before
        elif looks_secret(bare) or (joined and looks_secret(value)):
            name = name if joined and looks_secret(value) else "SECRET"
            start = text.index("=", start) + 1 if name != "SECRET" else start
        else:
            before = "" if joined else bare
            continue
        before = ""
        # Quotes around the value stay where they are.
        while start < match.end() and text[start] in "\"'":
            start += 1
        stop = match.end()
        while stop > start and text[stop - 1] in "\"'":
            stop -= 1
        variable = _NO_NAME.sub("_", name.upper()).strip("_") or "SECRET"
        names.append(variable)
        parts += [text[end:start], read_variable(variable, quotes[start])]
        end = stop
    return "".join([*parts, text[end:]]), names
