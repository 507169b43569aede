# SPDX-License-Identifier: Apache-2.0
"""Texts with `*` for anything, as statements and queries of metrics and logs write them."""


def fits(pattern: str, text: str) -> bool:
    """Whether the text has the pieces between the pattern's `*` in their order. Unlike GLOB and regular expressions it
    never goes back in the text, so many stars take no longer than one."""
    first, *middle = pattern.split("*")
    if not middle:
        return text == pattern
    last = middle.pop()
    if not text.startswith(first) or not text.endswith(last) or len(first) + len(last) > len(text):
        return False
    position, end = len(first), len(text) - len(last)
    for piece in middle:
        start = text.find(piece, position, end)
        if start < 0:
            return False
        position = start + len(piece)
    return True
