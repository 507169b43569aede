# SPDX-License-Identifier: Apache-2.0
"""Bounds that every platform sets on a job, each its own: the platform's rules give them."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.checks.registry import Wrong, at
from schemas.model import Stack

DAY = 24 * 60


def disks_within(stack: Stack, smallest: int, largest: int) -> Iterator[Wrong]:
    """In gigabytes."""
    for name, job in stack.jobs.items():
        size = job.block_storage_gb
        if not smallest <= size <= largest:
            message = f"a node's disk cannot have {size} GB, only {smallest} to {largest}"
            use = smallest if size < smallest else largest
            yield Wrong(at("jobs", name, "blockStorageGb"), message, f"use {use}")


def runtimes_within(stack: Stack, shortest: int, longest: int, who: str) -> Iterator[Wrong]:
    """In minutes. `who`: the words before the bounds, such as `a run has`."""
    for name, job in stack.jobs.items():
        minutes = job.maximum_runtime_minutes
        if not shortest <= minutes <= longest:
            message = f"{minutes} minutes are not allowed: {who} {shortest} to {longest} ({longest // DAY} days)"
            use = shortest if minutes < shortest else longest
            remedy = f"use {use}, or as long as the training needs"
            yield Wrong(at("jobs", name, "maximumRuntimeMinutes"), message, remedy)
