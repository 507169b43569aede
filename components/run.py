# SPDX-License-Identifier: Apache-2.0
"""One training run as a resource of our own provider, the same on every platform (docs/contracts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pulumi

from components.plan.model import RUN_TYPE

TYPE = RUN_TYPE


class RunProvider(pulumi.ProviderResource):
    """Our provider. It gets its region and credentials explicitly, never from the stack's own `trainyard:` keys."""

    def __init__(self, name: str, settings: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard", name, dict(settings), opts)


class Run(pulumi.CustomResource):
    """A training run. If one of its inputs changes, it starts again."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = {"state": None, "node_runs": None}
        super().__init__(TYPE, name, {**outputs, **inputs}, opts)

    @property
    @pulumi.getter
    def state(self) -> pulumi.Output[str]:
        return cast("pulumi.Output[str]", pulumi.get(self, "state"))

    @property
    @pulumi.getter(name="nodeRuns")
    def node_runs(self) -> pulumi.Output[list[Mapping[str, Any]]]:
        return cast("pulumi.Output[list[Mapping[str, Any]]]", pulumi.get(self, "node_runs"))

    def translate_output_property(self, prop: str) -> str:
        return "node_runs" if prop == "nodeRuns" else prop


def aliases(names: Iterable[str]) -> list[pulumi.Input[str | pulumi.Alias]] | None:
    """Pulumi's option `aliases` for the earlier names of a job or run, so that it keeps its state when it is
    renamed."""
    return [pulumi.Alias(name=name) for name in names] or None
