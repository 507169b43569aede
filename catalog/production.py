# SPDX-License-Identifier: Apache-2.0
"""Recognises production environments by a word in their names."""

import re
from collections.abc import Collection

WORDS = ("prod", "production", "prd", "live")
_BETWEEN_WORDS = re.compile(r"[^A-Za-z0-9]+")


def is_production(environment: str, words: Collection[str] = WORDS) -> bool:
    """Whether an environment's name, or a word of it, is one of these: `prod`, `eu-prod`, but not `product`."""
    return not {environment, *_BETWEEN_WORDS.split(environment)}.isdisjoint(words)
