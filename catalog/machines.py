# SPDX-License-Identifier: Apache-2.0
"""What a machine has, and what an hour of it costs: by the catalog's rows, or by a team's own, which come first.

The review asks this about plans, the policy pack about resources. What is not known is None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from catalog.tables import table

# In place of a shape: by this name a team says what a node costs on a compute target that is not the stack's own.
COMPUTE_TARGET = "compute target"
_MINUTES = 60
_TEAMS_OWN = "the team's own prices"
_WHOLE, _BY_SIZE = ("usd_per_hour",), ("usd_per_ocpu_hour", "usd_per_gib_hour")
# More is a typing mistake.
_MOST = 1e9
# The most that a count of 32 bits can be is how some say that nothing limits them.
_ENDLESS = 2**31 - 1


class Price(NamedTuple):
    """Dollars an hour, and where the number is from. None: nobody knows it."""

    usd_per_hour: float | None = None
    source: str = ""

    def of(self, number: int) -> float | None:
        return None if self.usd_per_hour is None else self.usd_per_hour * number


def price_of(
    name: str, own: Mapping[str, Any], ocpus: float | str | None = None, memory_gib: float | str | None = None
) -> Price:
    """An hour of one machine of a shape, or of whatever else a team has a row for.

    `own`: a team's rows by name, each with a price, or a number, which is the price. A flexible shape is priced by its
    size: without one it has no price.
    """
    given = own.get(name)
    row = given if isinstance(given, Mapping) else {} if given is None else {"usd_per_hour": given}
    listed_by = _TEAMS_OWN
    if given is None:
        row, listed_by = table("shapes").get(name, {}), str(table("review")["prices"]["source"])
    usd = _usd(row, ocpus, memory_gib)
    return Price() if usd is None or not isfinite(usd) else Price(usd, str(row.get("source") or listed_by))


def _usd(row: Mapping[str, Any], ocpus: float | str | None, memory_gib: float | str | None) -> float | None:
    if "usd_per_hour" in row:
        return float(row["usd_per_hour"])
    if not row.keys() >= {*_BY_SIZE} or ocpus is None or memory_gib is None:
        return None
    by_ocpu, by_gib = (float(row[key]) for key in _BY_SIZE)
    return by_ocpu * float(ocpus) + by_gib * float(memory_gib)


def accelerators_of(shape: str, rows: Mapping[str, Any]) -> int | None:
    """How many accelerators a machine of a shape has. None: these rows do not have the shape."""
    return int(rows[shape].get("accelerators", 0)) if shape in rows else None


def is_price(row: Any) -> bool:
    """Whether a row of a team's own is one: a price for a machine, or for each OCPU and GiB of one."""
    if not isinstance(row, Mapping):
        return False
    prices = [row.get(key) for key in (_WHOLE if _WHOLE[0] in row else _BY_SIZE)]
    return all(isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < _MOST for one in prices)


def most_retries(counts: Iterable[int]) -> int:
    """The most of these. Negative: nothing limits one of them."""
    listed = [-1 if count < 0 or count >= _ENDLESS else count for count in counts]
    return -1 if -1 in listed else max(listed, default=0)


def longest_hours(minutes: float | None, retries: int) -> float | None:
    """The most that one run takes, retries included. None: nothing bounds it."""
    return None if not minutes or retries < 0 else float(minutes) / _MINUTES * (retries + 1)
