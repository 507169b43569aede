# SPDX-License-Identifier: Apache-2.0
"""Pass, fail or unknown: what a rule says of a resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    outcome: Literal["pass", "fail", "unknown"]
    because: str = ""


PASS = Verdict("pass")


def fail(because: str) -> Verdict:
    return Verdict("fail", because)


def unknown(because: str) -> Verdict:
    return Verdict("unknown", because)


class NotKnownError(Exception):
    """A rule looked at a value that only exists once other resources do."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class Unknown:
    """Stands where a preview does not know a value. Any use of it ends the rule, so none passes by accident."""

    def __init__(self, path: str = "value") -> None:
        self._path = path

    def _refuse(self, *_: object) -> NoReturn:
        raise NotKnownError(self._path)

    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __getattr__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __str__ = __int__ = __float__ = _refuse

    def __repr__(self) -> str:
        return f"Unknown({self._path!r})"


def attempt(judge: Callable[[T], Verdict], value: T) -> Verdict:
    try:
        return judge(value)
    except NotKnownError as missing:
        return unknown(f"`{missing.path}` is not known yet")


def every(judge: Callable[[Any], Verdict], items: Iterable[Any]) -> Verdict:
    """One verdict on many: what certainly fails outweighs what is unknown, which outweighs what passes."""
    verdicts = [attempt(judge, item) for item in items]
    for outcome in ("fail", "unknown"):
        reasons = dict.fromkeys(verdict.because for verdict in verdicts if verdict.outcome == outcome)
        if reasons:
            return Verdict(outcome, "; ".join(reasons))
    return PASS


def either(*verdicts: Callable[[], Verdict]) -> Verdict:
    """One pass is enough; without one, what is unknown might still have been one."""
    found = [attempt(lambda verdict: verdict(), verdict) for verdict in verdicts]
    by_outcome = {verdict.outcome: verdict for verdict in reversed(found)}
    return by_outcome.get("pass") or by_outcome.get("unknown") or by_outcome["fail"]
