# SPDX-License-Identifier: Apache-2.0
"""Dates as OCI writes them."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from email.utils import formatdate

_YEAR_10000 = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def now() -> float:
    return time.time()


def rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def http_date(moment: float) -> str:
    return formatdate(moment, usegmt=True)


def parse_rfc3339(text: str) -> float:
    """Seconds since the epoch. ValueError for a text that is not a date, or a date that `rfc3339` cannot write."""
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    if moment >= _YEAR_10000:
        raise ValueError(f"{text!r} is later than the year 9999")
    return moment
