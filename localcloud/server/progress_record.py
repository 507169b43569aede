# SPDX-License-Identifier: Apache-2.0
"""Records the progress of runs: a node replaces its status object repeatedly, and the numbers of each version are kept.

Anybody with access to the bucket may write such an object, so only a limited number of finite numbers is kept.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.platform.progress import ProgressPoint, crowded_point, read_point, thin_points, written_point
from localcloud.server import http
from localcloud.server.cloud import StateFile

# docs/contracts.md names the object. A launcher writes far less than this.
_STATUS = re.compile(r"(?:.*/)?status/[0-9]{1,6}\.json", re.DOTALL)
_IN_FOLDER = re.compile(r"/status/([0-9]{1,6})\.json")
LONGEST_BYTES = 64 * 1024
log = logging.getLogger("localcloud")


def s3_bucket_key(bucket: str) -> str:
    """The key under which the progress in a bucket of S3 is recorded, because such a bucket has no id."""
    return f"s3://{bucket}"


def is_status_object(name: str, size: int) -> bool:
    return size <= LONGEST_BYTES and _STATUS.fullmatch(name) is not None


def record_status(store: StateFile, bucket: str, name: str, status: Mapping[str, Any], moment: float) -> None:
    """Records the numbers of a status object that was put."""
    point = read_point(moment, status.get("progress"))
    if point is None:
        return
    rows = store.connection.execute(
        "SELECT sequence, moment, point FROM progress WHERE bucket = ? AND name = ? ORDER BY sequence", (bucket, name)
    ).fetchall()
    text = point.written()
    if rows and rows[-1][2] == text:
        return
    values = (bucket, name, moment, text)
    store.connection.execute("INSERT INTO progress (bucket, name, moment, point) VALUES (?, ?, ?, ?)", values)
    gone = crowded_point([*(row[1] for row in rows), moment])
    if gone is not None:
        store.connection.execute("DELETE FROM progress WHERE sequence = ?", (rows[gone][0],))


def record_put(store: StateFile, bucket: str, name: str, content: bytes) -> None:
    """Records a status object that another API put. A failure is only logged, so that the put itself succeeds."""
    if is_status_object(name, len(content)):
        try:
            with store.transaction():
                record_status(store, s3_bucket_key(bucket), name, parse_status_object(content), http.current_moment())
        except (OSError, sqlite3.Error):
            log.exception("progress of %a", name)


def read_status_file(file: Path) -> Mapping[str, Any]:
    """The status object in a file; empty if it is not valid."""
    try:
        with file.open("rb") as opened:
            return parse_status_object(opened.read(LONGEST_BYTES))
    except OSError:
        return {}


def parse_status_object(content: bytes) -> Mapping[str, Any]:
    try:
        status = json.loads(content[:LONGEST_BYTES])
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


def recorded_progress(store: StateFile, bucket: str, folder: str, most: int) -> dict[int, list[ProgressPoint]]:
    """The recorded progress of a run's folder, by rank: at most `most` points of each, the oldest first."""
    rows = store.connection.execute(
        "SELECT name, moment, point FROM progress WHERE bucket = ? AND name >= ? AND name < ? ORDER BY sequence",
        (bucket, f"{folder}/status/", f"{folder}/status0"),
    )
    by_rank: defaultdict[int, list[tuple[float, str]]] = defaultdict(list)
    for name, moment, text in rows:
        if match := _IN_FOLDER.fullmatch(name[len(folder) :]):
            by_rank[int(match[1])].append((moment, text))
    return {
        rank: [written_point(*row) for row in thin_points(points, most)] for rank, points in sorted(by_rank.items())
    }
