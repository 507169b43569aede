# SPDX-License-Identifier: Apache-2.0
"""Implements `ReviewPlatform` for OpenPAI, which has only jobs: no network rules, no policy statements, and no
prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.machines import Price, price_of, retries_in_all
from catalog.platforms import platforms
from components.plan.model import RUN_TYPE
from components.platform.review import (
    UNREAD,
    Ability,
    Costs,
    Loss,
    Machines,
    Network,
    ReviewedResource,
    ReviewPlatform,
    Snapshot,
    loss_of,
)
from components.values.resource_types import LostWith

# The name under which a team may give a price for any node. The policy pack sees no SKUs.
_EVERY_NODE = "openpai"
_LOST_WITH_A_RUN = LostWith(
    "the job of the run {name} is stopped if it is still going, and its tasks start again from the beginning, or from "
    "their last checkpoint. The cluster keeps the stopped job and its logs for as long as it keeps any",
    "let it end first. Renamed, it goes on with `was:`; to start it again on purpose, raise its `attempt`",
    ("displayName",),
)
_RUNTIME_PLUGINS = "com.microsoft.pai.runtimeplugin"
_READ, _PLUGIN = "READ", "plugin:"
_WORDS = {"submit": "submit jobs", "use": "use", "write": "write", "read": "read"}


class OpenPaiReview(ReviewPlatform):
    def network(self, side: Snapshot) -> Network:
        return Network(unjudged=platforms()[side.platform].lacks["network"])

    def abilities(self, sides: Sequence[Snapshot]) -> tuple[frozenset[Ability], ...]:
        """What the stack's token allows, and access that plugins of jobs open. The cluster's groups are not known."""
        return tuple(frozenset(_granted_abilities(side)) for side in sides)

    def operation_words(self, operations: frozenset[str]) -> str:
        if operations == {_READ}:
            return "do what cannot be read here"
        words = (
            f"have the plugin {name.removeprefix(_PLUGIN)}" if name.startswith(_PLUGIN) else _WORDS.get(name, name)
            for name in operations
        )
        return ", ".join(sorted(words))

    def loss(self, resource: ReviewedResource) -> Loss | None:
        if resource.type != RUN_TYPE:
            return super().loss(resource)
        return None if resource.retain else loss_of(resource, _LOST_WITH_A_RUN)

    def costs(self, side: Snapshot, prices: Mapping[str, Any]) -> Costs:
        return Costs({name: _machines_of_job(job, prices) for name, job in (side.plan.get("jobs") or {}).items()})


def _granted_abilities(side: Snapshot) -> Iterator[Ability]:
    cluster: Mapping[str, Any] = side.plan.get("cluster") or {}
    who = f"user {cluster.get('user')} at {cluster.get('uri')}"
    for grant in (side.plan.get("access") or {}).get("grants", ()):
        named = {"users": who, "runs": "tasks"}.get(grant["who"], grant["who"])
        target = f" {grant['target']}" if grant.get("target") else ""
        yield Ability(named, grant["does"], f"{grant['what'].removesuffix('s') if target else grant['what']}{target}")
    for run in side.of(RUN_TYPE):
        protocol = run.inputs.get("protocol")
        if not isinstance(protocol, Mapping):
            yield Ability(UNREAD, _READ, f"the protocol of the run {run.name}")
            continue
        # Plugins of the runtime change tasks: one opens them for SSH, another mounts storages.
        for plugin in (protocol.get("extras") or {}).get(_RUNTIME_PLUGINS) or ():
            yield Ability(f"tasks of the job {run.name.partition('/')[0]}", f"{_PLUGIN}{plugin.get('plugin')}", "")


def _machines_of_job(job: Mapping[str, Any], prices: Mapping[str, Any]) -> Machines:
    """A cluster has no prices. A team may give one for each SKU, by its name in the stack file, or for every node.

    OpenPAI itself retries jobs and tasks, so no launch document counts that.
    """
    replicas = {role["called"]: int(role["replicas"]) for role in job["roles"]}
    roles: Mapping[str, Any] = job.get("taskRoles") or {}
    shape, nodes = str(job["shape"]["name"]), sum(replicas.values())
    # The plan of an earlier release does not name the SKUs of roles, and the job's own may not be theirs.
    alike = len({str(role["sku"]) for role in roles.values()}) <= 1
    names = {name: str(role.get("skuName") or (shape if alike else _EVERY_NODE)) for name, role in roles.items()}
    by_role = [
        (price_of(sku if sku in prices else _EVERY_NODE, prices), replicas.get(name, 0)) for name, sku in names.items()
    ]
    usd_of_roles = [price.of(number) for price, number in by_role]
    gpus = sum(int(role["sku"].get("gpus") or 0) * replicas.get(name, 0) for name, role in roles.items())
    if not nodes or any(usd is None for usd in usd_of_roles):
        price = Price()
    else:
        sources = dict.fromkeys(price.source for price, number in by_role if number)
        price = Price(sum(usd for usd in usd_of_roles if usd is not None) / nodes, "; ".join(sources))
    of_job, of_roles = int(job.get("retryCount") or 0), (int(role.get("retryCount") or 0) for role in roles.values())
    retries = retries_in_all(of_job, of_roles)
    shown = shape if set(names.values()) <= {shape} else f"{shape} and others"
    return Machines(shown, nodes, gpus / nodes if nodes else 0, *price, retries=retries)


REVIEW = OpenPaiReview()
