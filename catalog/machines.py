# SPDX-License-Identifier: Apache-2.0
"""The accelerators of a machine, and its price per hour: from the catalog's rows, or from a team's own, which come
first.

The review uses this for plans, the policy pack for resources. Unknown values are None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from catalog.platforms import platforms
from catalog.tables import rows_at, table

# The name, in place of a shape, for a team's price of a node on a compute target that is not the stack's own.
COMPUTE_TARGET = "compute target"
BLOCK_STORAGE = "GB of block storage"
_MINUTES = 60
_TEAMS_OWN = "the team's own prices"
_WHOLE, _BY_SIZE = ("usd_per_hour",), ("usd_per_ocpu_hour", "usd_per_gib_hour")
# A higher price is a typing mistake.
_MOST = 1e9
# The largest 32-bit count, which some platforms use for `no limit`.
_ENDLESS = 2**31 - 1


# Frameworks whose nodes exchange tensors by the libraries of their accelerators, such as NCCL.
COLLECTIVE_FRAMEWORKS = frozenset({"accelerate", "horovod", "lightning", "pytorch", "torchrun"})


class Price(NamedTuple):
    """Dollars per hour, and the source of the number. None if it is not known."""

    usd_per_hour: float | None = None
    source: str = ""

    def of(self, number: int) -> float | None:
        return None if self.usd_per_hour is None else self.usd_per_hour * number


def price_of(
    name: str, own: Mapping[str, Any], ocpus: float | str | None = None, memory_gib: float | str | None = None
) -> Price:
    """The price per hour of one machine of a shape, or of any other row of a team.

    `own`: a team's rows by name, each with a price, or just a number, which is the price. A flexible shape is priced by
    its size, and has no price without one.
    """
    given = own.get(name)
    row = given if isinstance(given, Mapping) else {} if given is None else {"usd_per_hour": given}
    listed_by = _TEAMS_OWN
    if given is None:
        listed = table("review")["prices"]
        row, listed_by = machine_named(name) or listed["others"].get(name) or {}, str(listed["source"])
    usd = None
    if "usd_per_hour" in row:
        usd = float(row["usd_per_hour"])
    elif row.keys() >= {*_BY_SIZE} and ocpus is not None and memory_gib is not None:
        by_ocpu, by_gib = (float(row[key]) for key in _BY_SIZE)
        usd = by_ocpu * float(ocpus) + by_gib * float(memory_gib)
    return Price() if usd is None or not isfinite(usd) else Price(usd, str(row.get("source") or listed_by))


def price_with_block_storage(machine: Price, size_gb: float, own: Mapping[str, Any]) -> Price:
    """The price of a machine with its block storage. Unknown if either is."""
    if not size_gb:
        return machine
    storage = price_of(BLOCK_STORAGE, own)
    if machine.usd_per_hour is None or storage.usd_per_hour is None:
        return Price()
    return Price(machine.usd_per_hour + storage.usd_per_hour * size_gb, machine.source)


def machine_types_of(platform: str) -> Mapping[str, Mapping[str, Any]]:
    """The rows of a platform's machine types, by their names. Empty if the catalog has none of this platform."""
    return rows_at(platforms()[platform].machines)


def machine_named(shape: str) -> Mapping[str, Any] | None:
    """The row of a machine type. No two platforms have one of the same name. None if the catalog does not have it."""
    return next((rows[shape] for rows in map(machine_types_of, platforms()) if shape in rows), None)


def accelerators_of(shape: str) -> int | None:
    """The number of accelerators of a machine. None if the catalog does not have its shape."""
    machine = machine_named(shape)
    return None if machine is None else int(machine.get("accelerators", 0))


def is_price(row: Any) -> bool:
    """Whether a team's row is valid: a price for a machine, or for each OCPU and GiB of one."""
    if not isinstance(row, Mapping):
        return False
    prices = [row.get(key) for key in (_WHOLE if _WHOLE[0] in row else _BY_SIZE)]
    return all(
        isinstance(price, int | float) and not isinstance(price, bool) and 0 <= price < _MOST for price in prices
    )


def most_retries(counts: Iterable[int]) -> int:
    """The largest of these counts. Negative if one of them has no limit."""
    listed = [-1 if count < 0 or count >= _ENDLESS else count for count in counts]
    return -1 if -1 in listed else max(listed, default=0)


def retries_in_all(of_job: int, of_roles: Iterable[int]) -> int:
    """The most retries of a task that starts again alone, and with each retry of its job. Negative: no limit."""
    of_tasks = most_retries(of_roles)
    return -1 if most_retries([of_job, of_tasks]) < 0 else (of_job + 1) * (of_tasks + 1) - 1


def longest_run_hours(platform: str, minutes: float | None, retries: int) -> float | None:
    """The longest time of one run. None if there is no limit.

    Retries add nothing on a platform whose maximum runtime includes them."""
    if not minutes:
        return None
    row = platforms().get(platform)
    if row is not None and row.maximum_runtime == "run":
        return float(minutes) / _MINUTES
    return None if retries < 0 else float(minutes) / _MINUTES * (retries + 1)
