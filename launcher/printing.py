# SPDX-License-Identifier: Apache-2.0
"""Prints the launcher's own lines, each in one write, with secrets masked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from launcher.escaping import MASK, passwords_in_urls, terminal_line, without_passwords

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRETS?|TOKENS?|API_?KEYS?|ACCESS_?KEYS?|PRIVATE_?(?:KEYS?|PEM)|RPST"
    r"|SECRET_?KEYS?|CREDENTIALS?|AUTH)(?:_[0-9]+)?$",
    re.IGNORECASE,
)
# Shorter values occur in too many harmless words.
_SHORTEST = 6


class LinePrinter:
    """Prints lines with the secrets in them masked."""

    def __init__(self, prefix: str = "launcher", secrets: Iterable[str] = ()) -> None:
        self._prefix = prefix
        self._secrets = sorted({text for text in secrets if len(text) >= _SHORTEST}, key=len, reverse=True)

    def __call__(self, text: str) -> None:
        line = f"[{self._prefix}] {terminal_line(self.masked(text))}\n".encode(errors="replace")
        with suppress(OSError):  # nobody reads our output any more: training goes on without it
            os.write(1, line)

    def masked(self, text: str) -> str:
        """The text with the values of secrets masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return without_passwords(text)


def secret_values(environment: Mapping[str, str], named: Iterable[str]) -> set[str]:
    """The values of variables that the stack declares secret, and of those whose names suggest it."""
    names = {*named, *(name for name in environment if _SECRET_NAME.search(name))}
    in_urls = {password for value in environment.values() for password in passwords_in_urls(value)}
    return {environment[name] for name in names if environment.get(name)} | in_urls
