# SPDX-License-Identifier: Apache-2.0
"""How Slurm writes numbers and names of nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence


class SlurmError(Exception):
    """Ends one of Slurm's programs with the code 1."""


def compress_counts(counts: Sequence[int]) -> str:
    """Numbers as Slurm writes them: `2(x3),1`."""
    parts: list[tuple[int, int]] = []
    for count in counts:
        if parts and parts[-1][0] == count:
            parts[-1] = (count, parts[-1][1] + 1)
        else:
            parts.append((count, 1))
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in parts)


def expand_hosts(text: str) -> list[str]:
    """The names in a list such as `node[1-3,7],10.0.0.4`."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        match = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", part)
        if not match:
            names.append(part)
            continue
        for span in match[2].split(","):
            first, _, last = span.partition("-")
            if not first.isdigit() or not (last or first).isdigit():
                raise SlurmError(f"Invalid hostlist: {text}")
            for number in range(int(first), int(last or first) + 1):
                names += expand_hosts(f"{match[1]}{number:0{len(first)}}{match[3]}")
    return names


def slurm_number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SlurmError(f"invalid value {text!r} of {what}") from None
