# SPDX-License-Identifier: Apache-2.0
"""Exit codes of OpenPAI in words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from catalog.tables import table

# By these two codes a task ends that was stopped and did not fail.
STOPPED = frozenset({-210, -220})
# A code of the platform that has no row.
_UNDEFINED = -8000


@dataclass(frozen=True, slots=True)
class Exit:
    """`kind`: transient, permanent or unknown, which decides whether OpenPAI tries again."""

    code: int
    phrase: str
    kind: str
    words: str
    began: bool = True

    @property
    def text(self) -> str:
        """For people. A program's own code needs no explanation."""
        return f"exit code {self.code}" + (f": {self.words}" if self.words else "")


@cache
def _exits() -> Mapping[int, Exit]:
    rows = ({key: value for key, value in row.items() if key != "when"} for row in table("openpai_exits")["exit"])
    return {row["code"]: Exit(**row) for row in rows}


def exit_of(code: int) -> Exit:
    """What a code means. A code that no row has is the program's own, or one of a newer OpenPAI."""
    if code in _exits():
        return _exits()[code]
    undefined = _exits()[_UNDEFINED]
    if code > 0:
        return Exit(code, "", undefined.kind, "")
    return Exit(code, undefined.phrase, undefined.kind, undefined.words)


def code_in(values: Mapping[str, Any], key: str) -> int | None:
    code = values.get(key)
    return code if type(code) is int else None
