# SPDX-License-Identifier: Apache-2.0
"""A try as values for the code that starts every run, and its texts with references filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from components.plan.naming import REFERENCE, expand
from components.platform.input_checks import with_defaults
from components.platform.run_platform import fingerprint_of_try
from components.platform.runs import RunSpec, run_spec
from components.platform.tries import ReadyTry, TryError


def spec_of_try(ready: ReadyTry) -> RunSpec:
    """Its fingerprint says that no stack has it in its state."""
    planned = ready.planned
    spec = run_spec(f"try of {planned.plan.stack}: {planned.title}", with_defaults(dict(ready.inputs)))
    like = planned.like.name if planned.like else ""
    return replace(
        spec,
        fingerprint=fingerprint_of_try(like, spec.fingerprint),
        # Whoever types a command has had their access for long.
        timeouts=replace(spec.timeouts, access=0.0),
    )


def filled(what: str, text: str, values: Mapping[str, str]) -> str:
    """Raises TryError where a reference is left: nothing that is deployed says its value yet."""
    made = expand(text, values)
    if left := REFERENCE.search(made):
        raise TryError(
            f"{what} names {left[0]}, which is known once the job has a run: add one to the stack file first"
        )
    return made
