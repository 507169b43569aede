# SPDX-License-Identifier: Apache-2.0
"""A try as values for the code that starts every run."""

from __future__ import annotations

from dataclasses import replace

from provider.runs.check import with_defaults
from provider.runs.model import RunSpec, run_spec
from provider.runs.tries import fingerprint_of_try
from tries.model import ReadyTry


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
