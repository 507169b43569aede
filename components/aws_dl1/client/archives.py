# SPDX-License-Identifier: Apache-2.0
"""The archives of code that `up` has put into the bucket."""

from __future__ import annotations

from components.platform.calls import Call
from components.s3.calls import pages
from components.s3.session import Session

_CODE = ".trainyard/code/"


def newest_code(session: Session, call: Call, bucket: str, job: str) -> str | None:
    """The archive of a job that was put last; older ones stay for runs that still wait. None if it has no code."""
    stem = f"{_CODE}{job}-"
    rows = [
        (row["LastModified"], row["Key"])
        for page in pages(
            call, "Look for the job's code", session.client("s3"), "list_objects_v2", Bucket=bucket, Prefix=stem
        )
        for row in page.get("Contents", ())
        # Another job's name may begin with this one's.
        if "-" not in row["Key"].removeprefix(stem)
    ]
    return str(max(rows)[1]) if rows else None
