# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the grants of the catalog that this stack needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from catalog.tables import table
from components.plan.model import AccessPlan, Grant
from schemas.model import Stack


def access_plan(stack: Stack, bucket: str, repository: str, circumstances: frozenset[str]) -> AccessPlan:
    """The access plan of a stack. `circumstances`: words under `when` that hold because of the platform."""
    inputs = input_buckets(stack, bucket)
    targets = {"repository": (repository,), "bucket": (bucket,), "inputs": inputs}
    holds = circumstances | {word for word, true in (("logs", stack.logs.enabled), ("inputs", bool(inputs))) if true}
    return AccessPlan(
        mode=stack.access.mode,
        create=stack.makes("access"),
        grants=tuple(grants(table("access")["grant"], holds, targets)),
    )


def grants(
    rows: Iterable[Mapping[str, str]], holds: frozenset[str], targets: Mapping[str, tuple[str, ...]]
) -> Iterator[Grant]:
    """The grants of the rows whose `when` holds. A row that is narrowed gives one grant for each target."""
    for row in rows:
        if "when" not in row or row["when"] in holds:
            for target in targets[row["only"]] if "only" in row else (None,):
                yield Grant(row["who"], row["does"], row["what"], row["why"], target)  # type: ignore[arg-type]


def input_buckets(stack: Stack, bucket: str) -> tuple[str, ...]:
    """Buckets of input data, without the stack's own bucket: runs may read that one anyway."""
    named = (item.bucket for job in stack.jobs.values() for item in job.inputs)
    return tuple(dict.fromkeys(name for name in named if name and name != bucket))
