# SPDX-License-Identifier: Apache-2.0
"""Names of packages, and the modules that packages bring (catalog/modules.toml)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache

from catalog.tables import table


def normalized(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def packages_of(module: str) -> tuple[str, ...]:
    """The packages that provide a module, the usual one first."""
    return (*table("modules")["packages"].get(module, ()), normalized(module))


def brings(packages: Collection[str], module: str) -> bool:
    """Whether one of the packages provides a top-level module."""
    # `azure-storage-blob` and `ruamel.yaml` share a top-level module with others.
    own = normalized(module)
    return any(name in packages for name in packages_of(module)) or any(name.startswith(f"{own}-") for name in packages)


def stands_for(package: str) -> tuple[str, ...]:
    """Other names under which people ask for a package: `tensorflow-cpu` is TensorFlow."""
    return other_names().get(package, ())


def other_names() -> Mapping[str, tuple[str, ...]]:
    """The packages that people ask for under other names, with these."""
    return {name: tuple(others) for name, others in table("modules")["stands_for"].items()}


def modules_behind(name: str) -> tuple[str, ...]:
    """The modules that a module, or a package with an extra, imports besides its own: `dask.dataframe` needs pandas."""
    rows: Mapping[str, list[str]] = table("modules")["needs"]
    parts = name.split(".")
    steps = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return tuple(module for step in steps for module in rows.get(step, ()))
