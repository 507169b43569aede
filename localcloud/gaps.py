# SPDX-License-Identifier: Apache-2.0
"""Lists the operations that the local cloud implements and lacks: `python -m localcloud.gaps`. Each platform's part is
`gap_paragraphs` in `gaps.py` of its local home, if it has operations of an SDK to compare with."""

from __future__ import annotations

import textwrap

from localcloud.clients import modules_of_local_homes

_WIDTH = 119
_HEAD = """\
<!-- Made by `python -m localcloud.gaps > docs/local-cloud-gaps.md`; a test keeps it so. -->
# What the local cloud lacks
"""


def render_gaps_page() -> str:
    paragraphs = [_HEAD, *(part for module in modules_of_local_homes("gaps") for part in module.gap_paragraphs())]
    return "\n\n".join(part.strip() for part in paragraphs if part) + "\n"


def operations_line(word: str, names: tuple[str, ...]) -> str:
    return textwrap.fill(f"{word}: {', '.join(names)}.", _WIDTH, break_long_words=False) if names else ""


def list_item(text: str) -> str:
    return textwrap.fill(f"- {text}", _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    print(render_gaps_page(), end="")
