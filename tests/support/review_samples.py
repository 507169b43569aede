# SPDX-License-Identifier: Apache-2.0
"""Small snapshots, a platform that answers from a table, and a review with an item in every section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.platform.review import Costs, Loss, ReviewedResource, ReviewPlatform, Snapshot
from trainyard.review.model import (
    Access,
    Change,
    Edge,
    Forecast,
    Hanging,
    JobCost,
    Opening,
    Picture,
    ProgramChange,
    Remark,
    RepositoryReview,
    Review,
    RunChange,
    StackCosts,
)

URN = "urn:pulumi:one::trainyard::{}::{}"


def resource(token: str, name: str, inputs: Mapping[str, Any] | None = None, **columns: Any) -> ReviewedResource:
    return ReviewedResource(token, name, URN.format(token, name), "", dict(inputs or {}), **columns)


def side(*resources: ReviewedResource, plan: Mapping[str, Any] | None = None, **columns: Any) -> Snapshot:
    return Snapshot("one", "oci", dict(plan or {}), resources, **columns)


@dataclass
class Table(ReviewPlatform):
    """A platform for reviews: which inputs replace a resource of a type, and what is lost with it."""

    replacing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    losses: Mapping[str, Loss] = field(default_factory=dict)
    costing: Costs = field(default_factory=Costs)

    def replacing_inputs(self, before: ReviewedResource, after: ReviewedResource) -> tuple[str, ...]:
        """The keys in the table, or else those of every platform."""
        keys = self.replacing.get(after.type)
        if keys is None:
            return ReviewPlatform.replacing_inputs(self, before, after)
        return tuple(key for key in keys if before.inputs.get(key) != after.inputs.get(key))

    def loss(self, resource: ReviewedResource) -> Loss | None:
        return self.losses.get(resource.type)

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        return self.costing


def whole_review(name: str = "vision-prod", many: int = 1) -> Review:
    """A review in which every section has `many` items, and `name` is used for every name."""
    job = JobCost(name, name, 4, 2, 1, 6.0, 24.0, 48.0, 8.0, 48.0, None, True, None, name)
    return Review(
        stack=name,
        file=f"stacks/Pulumi.{name}.yaml",
        platform="oci",
        kind="changed",
        commit="0123456789ab",
        against=f"{name} (abcdef)",
        on="2026-11-26",
        refused=name,
        program=(ProgramChange("settings", f"aws:profile: not set -> {name}", (name,)),),
        opened=tuple(Opening(f"TCP {one} into {name}, from anywhere (0.0.0.0/0)", True) for one in range(many)),
        closed=(Opening(f"UDP 5 into {name}"),),
        hanging=(Hanging(name, (f"{name}/worker", f"{name}/main"), "29400", f"a rule for {name}"),),
        gained=tuple(Access(f"group {name} {one}", "read objects", f"bucket {name}", (name,)) for one in range(many)),
        lost=(Access(name, name, name),),
        changes=tuple(
            Change("replaced", "oci:Core/vcn:Vcn", f"{name} {one}", name, (name,), name, Loss(f"{name} {one}", name))
            for one in range(many)
        ),
        warnings=(f"{name}\n  {name}",),
        what_runs=tuple(RunChange(f"{name} {one}", name, "changed", name, name, f"{name} 2") for one in range(many)),
        forecast=Forecast((name,), (name,)),
        forecast_changed=True,
        costs=StackCosts((job,), (), None, None, 1),
        unproven=(name,),
        findings=(Remark("TY101", "warning", name, name, name, 3),),
        pack=(
            Remark("rule", "mandatory", name, name, name, outcome="fail"),
            Remark("r", "a", name, name, outcome="waived", waiver=name),
        ),
        unjudged=(name,),
        picture=Picture(
            name,
            (f"{name}/main x 1",),
            (f"p {name}",),
            (f"bucket {name}",),
            (Edge(f"p {name}", f"bucket {name}", name),),
        ),
    )


def whole_repository(name: str = "vision-prod", many: int = 1) -> RepositoryReview:
    """What lies beside the stacks, with `name` for every name."""
    changes = tuple(ProgramChange("program", f"{name} {one}", (name,), (name,)) for one in range(many))
    return RepositoryReview((name,), changes, 3)
