# SPDX-License-Identifier: Apache-2.0
"""Recognises production environments by a word in their names."""

import re
from collections.abc import Collection

WORDS = ("prod", "production", "prd", "live", "main")
_BETWEEN_WORDS, _BETWEEN_LETTERS = re.compile(r"[^a-z0-9]+"), re.compile(r"[^a-z]+")


def is_production(environment: str, words: Collection[str] = WORDS) -> bool:
    """Whether an environment's name, or a word of it, is one of these: `prod`, `eu-Prod2`, but not `product`."""
    name = environment.casefold()
    found = {name, *_BETWEEN_WORDS.split(name), *_BETWEEN_LETTERS.split(name)}
    return not found.isdisjoint(word.casefold() for word in words)
