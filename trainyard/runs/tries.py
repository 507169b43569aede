# SPDX-License-Identifier: Apache-2.0
"""A try on its platform: made ready from what is deployed, and started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from catalog.platforms import platform_in
from components.platform.base import answers
from components.platform.calls import Call, ProviderError
from components.platform.client import Runs, UnknownPlaceError, Where
from components.platform.inputs import with_defaults
from components.platform.runs import NodeRun, RunSpec, fingerprint_of_try, run_spec
from components.platform.tries import PlannedTry, ReadyTry, TryError


def runs_for_try(where: Where) -> Runs:
    name = platform_in(where.config)
    try:
        # The bucket is the plan's.
        return answers(name).runs_of_caller(replace(where, bucket=None))
    except UnknownPlaceError:
        raise TryError(f"the stack runs on {name}: nothing can be tried there yet") from None


def prepare_try(runs: Runs, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
    """Raises TryError if nothing is deployed, or if the caller may not read it."""
    with _access_explained(runs, planned):
        return runs.prepare_try(call, planned, folder)


def start_try(runs: Runs, call: Call, ready: ReadyTry) -> Sequence[NodeRun]:
    """Starts every node. If one cannot be started, or the user interrupts, it ends those that were started: nobody
    would know of them, and they would cost money."""
    spec = _spec_of_try(ready)
    with _access_explained(runs, ready.planned):
        try:
            return list(runs.ensure(call, spec, ()))
        except BaseException:
            runs.cancel(call, runs.started(call, spec))
            raise


def _spec_of_try(ready: ReadyTry) -> RunSpec:
    """The spec of a try. Its fingerprint says that it is in no stack's state."""
    planned = ready.planned
    spec = run_spec(f"try of {planned.plan.stack}: {planned.title}", with_defaults(dict(ready.inputs)))
    like = planned.like.name if planned.like else ""
    return replace(
        spec,
        fingerprint=fingerprint_of_try(like, spec.fingerprint),
        # The user's access is not new, so there is no wait for it to take effect.
        timeouts=replace(spec.timeouts, access=0.0),
    )


@contextmanager
def _access_explained(runs: Runs, planned: PlannedTry) -> Iterator[None]:
    try:
        yield
    except ProviderError as error:
        if lacked := runs.access_lacked(planned, error):
            raise TryError(f"{error.cause}\n{lacked}") from error
        raise
