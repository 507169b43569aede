# SPDX-License-Identifier: Apache-2.0
"""Time in conditions: the operators and values of each time variable, and their values at a moment."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time

from components.oci.iam.statement import Operator

STAMP = "request.utc-timestamp"
MONTH = f"{STAMP}.month-of-year"
DAY = f"{STAMP}.day-of-month"
WEEKDAY = f"{STAMP}.day-of-week"
TIME_OF_DAY = f"{STAMP}.time-of-day"

_CALENDAR: tuple[Operator, ...] = ("=", "!=", "in")
TIME_OPERATORS: Mapping[str, tuple[Operator, ...]] = {
    STAMP: ("before", "after"),
    MONTH: _CALENDAR,
    DAY: _CALENDAR,
    WEEKDAY: _CALENDAR,
    TIME_OF_DAY: ("between",),
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def instant(text: str) -> datetime | None:
    """Reads an ISO 8601 moment or day in UTC, as OCI writes them. None if the text is neither."""
    try:
        moment = datetime.fromisoformat(text.upper().removesuffix("Z"))
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def time_of_day(text: str) -> time | None:
    """Reads a time of the day in UTC. None if the text is not one."""
    try:
        moment = time.fromisoformat(text.upper().removesuffix("Z"))
    except ValueError:
        return None
    return moment if moment.tzinfo is None else None


def _number_to(highest: int) -> Callable[[str], bool]:
    return lambda text: text.isascii() and text.isdigit() and len(text) <= 2 and 1 <= int(text) <= highest


_VALUES: Mapping[str, Callable[[str], bool]] = {
    STAMP: lambda text: instant(text) is not None,
    MONTH: _number_to(12),
    DAY: _number_to(31),
    WEEKDAY: lambda text: text.lower() in _WEEKDAYS,
    TIME_OF_DAY: lambda text: time_of_day(text) is not None,
}


def is_time_value(variable: str, text: str) -> bool:
    """Whether the variable can be compared with the text. Variables that are not times take any text."""
    check = _VALUES.get(variable)
    return check is None or check(text)


def time_variables(moment: datetime) -> dict[str, str]:
    """The time variables of a request at this moment."""
    utc = moment.astimezone(UTC)
    return {
        STAMP: utc.isoformat(),
        MONTH: str(utc.month),
        DAY: str(utc.day),
        WEEKDAY: _WEEKDAYS[utc.weekday()],
        TIME_OF_DAY: utc.time().isoformat(),
    }
