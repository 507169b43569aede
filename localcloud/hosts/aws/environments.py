# SPDX-License-Identifier: Apache-2.0
"""The local environments that may stand in for a machine's images: those with PyTorch, which is what Gaudi trains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catalog.environments import EnvironmentFacts
from localcloud.environments import cache
from localcloud.environments.find import LAYER, Environment, facts_here, find, requirements_of
from localcloud.hosts import shown
from localcloud.hosts.shown import Shown

_TRAINS = "pytorch"


def environments() -> list[tuple[Environment, str, EnvironmentFacts]]:
    """Those that exist, each with the digest of the packages over it, and what it can run."""
    return list(_environments())


def as_row(environment: Environment, packages: str, facts: EnvironmentFacts) -> dict[str, Any]:
    """What a machine's stand-in for docker knows of an environment."""
    variables = {"TRAINYARD_ENVIRONMENT": environment.name.partition(LAYER)[0], **environment.variables}
    return {
        "name": environment.name, "path": environment.path, "variables": variables, "packages": packages,
        "requirements": requirements_of(packages) if packages else (),
        "serves": facts.serves, "offers": sorted(facts.offers), "provides": dict(facts.provides),
    }  # fmt: skip


def shown_files() -> list[Shown]:
    """The files of all these environments, as every machine sees them."""
    pairs = (pair for each, _, _ in environments() for pair in shown.programs(each.layout, dict(each.variables)))
    return list(dict.fromkeys(pairs))


def _environments() -> Iterator[tuple[Environment, str, EnvironmentFacts]]:
    for facts in facts_here().values():
        base = find(facts.name) if _TRAINS in facts.serves else None
        if not isinstance(base, Environment):
            continue
        yield base, "", facts
        for folder in sorted(cache.cache_folder().glob(f"{facts.name}{LAYER}*")):
            digest = folder.name.removeprefix(f"{facts.name}{LAYER}").partition("-")[0]
            layer = find(f"{facts.name}{LAYER}{digest}")
            if isinstance(layer, Environment):
                yield layer, digest, facts
