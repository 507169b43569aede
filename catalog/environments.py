# SPDX-License-Identifier: Apache-2.0
"""Chooses the local environment of a job, for `check` and for everything that makes or starts one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from catalog.imports import modules_imported_besides, normalized_name, provides_module, requested_package_names
from catalog.tables import table

if TYPE_CHECKING:
    from packaging.requirements import Requirement


@dataclass(frozen=True, slots=True)
class EnvironmentFacts:
    """The abilities of an environment. `provides`: packages that requirements cannot replace, with their versions."""

    name: str
    serves: tuple[str, ...]
    offers: frozenset[str]
    provides: Mapping[str, str]

    def version_of(self, package: str) -> str | None:
        """The version of a package, also under its other names. It may be one of several (`versions_in`)."""
        if package in self.provides:
            return self.provides[package]
        return next(
            (version for name, version in self.provides.items() if package in requested_package_names(name)), None
        )


@dataclass(frozen=True, slots=True)
class Need:
    """What a job needs. `modules` are those that its code imports, `requirements` the lines of its requirements file.
    A team's own framework fits any environment with these modules."""

    framework: str
    strategy: str | None = None
    modules: Set[str] = frozenset()
    requirements: tuple[str, ...] = ()
    team_own: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """A requirement, and the version of its package that an environment has instead."""

    requirement: str
    package: str
    version: str

    @property
    def has(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True, slots=True)
class Choice:
    """`fitting`: the environments that can run a job, best first. `nearest`: the first of these, or else the most
    similar environment.

    `lacks`: the modules that `nearest` does not have and that no requirement certainly brings. `conflicts`: the
    requirements that it cannot meet. `passed_over`: the environment that would be `nearest` without the requirements in
    `decisive`.
    """

    fitting: tuple[EnvironmentFacts, ...]
    nearest: EnvironmentFacts | None = None
    lacks: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    passed_over: EnvironmentFacts | None = None
    decisive: tuple[Conflict, ...] = ()

    @property
    def decision(self) -> str:
        """Why requirements give the job another environment than its code alone would. Empty if they do not."""
        if not self.passed_over or not self.nearest:
            return ""
        unmet = ", ".join(f"`{conflict.requirement}` ({conflict.has})" for conflict in self.decisive)
        lacking = f"; it has no {', '.join(f'`{name}`' for name in self.lacks)}" if self.lacks else ""
        return f"`{self.nearest.name}`, not `{self.passed_over.name}`, which does not meet {unmet}{lacking}"


@cache
def environment_facts() -> Mapping[str, EnvironmentFacts]:
    """The rows of catalog/environments.toml, in their order."""
    return {
        name: EnvironmentFacts(name, tuple(row["serves"]), frozenset(row["offers"]), row["provides"])
        for name, row in table("environments").items()
    }


def choose_environment(need: Need, rows: Mapping[str, EnvironmentFacts] | None = None) -> Choice:
    """The environments that fit a job. `rows`: those of the catalog, perhaps with the versions of this machine.

    A requirement that the environment's own package does not meet excludes an environment. So does a missing module,
    unless the job has requirements: these may bring it under an unknown name.
    """
    every = environment_facts() if rows is None else rows
    wished = {need.framework, f"{need.framework}/{need.strategy}"}
    served = [row for row in every.values() if need.team_own or wished & set(row.serves)]
    parsed: list[tuple[str, Requirement]] = []
    if need.requirements:
        # A lazy import, because only requirements need it.
        from packaging.requirements import InvalidRequirement, Requirement

        for text in need.requirements:
            with suppress(InvalidRequirement):
                parsed.append((text, Requirement(text)))
    packages = [package for _, package in parsed]
    # The modules that an environment must offer: imported ones that no requirement brings, and those behind the extras
    # of a requirement.
    plain = {normalized_name(package.name) for package in packages if not package.extras}
    extras = {f"{normalized_name(package.name)}[{extra}]" for package in packages for extra in package.extras}
    offered = frozenset().union(*(row.offers for row in every.values()))
    wanted = {module for module in need.modules & offered if not provides_module(plain, module)}
    wanted |= {module for extra in extras for module in modules_imported_besides(extra)}
    clashing = {row.name: tuple(_version_conflicts(parsed, row)) for row in served}
    by_lack = sorted(served, key=lambda row: len(wanted - row.offers))
    fitting = [row for row in by_lack if not clashing[row.name] and (need.requirements or not wanted - row.offers)]

    def lacks_and_downloads(row: EnvironmentFacts) -> tuple[int, int]:
        # What an environment has need not be downloaded. Of PyTorch and XGBoost it has builds without NVIDIA's
        # libraries.
        downloads = [text for text, package in parsed if row.version_of(normalized_name(package.name)) is None]
        return len(wanted - row.offers), len(downloads)

    fitting.sort(key=lacks_and_downloads)
    if not by_lack:
        return Choice(())
    nearest = fitting[0] if fitting else min(by_lack, key=lambda row: len(clashing[row.name]))
    first = by_lack[0]
    passed_over = first if fitting and first is not nearest and clashing[first.name] else None
    lacks = tuple(sorted(wanted - nearest.offers))
    decisive = clashing[first.name] if passed_over else ()
    return Choice(tuple(fitting), nearest, lacks, clashing[nearest.name], passed_over, decisive)


def versions_in(text: str) -> tuple[str, ...]:
    """The versions of `provides`: one, or one for each interpreter."""
    return tuple(text.split(", "))


def requirement_of(line: str) -> str:
    """A line of a requirements file without its hashes."""
    return line.partition(" --hash=")[0].strip()


def requirement_lines(text: str) -> tuple[str, ...]:
    """The requirements in the text that pip gets, without its options and without hashes."""
    lines = (requirement_of(line) for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith(("-", "#")))


def _version_conflicts(parsed: Sequence[tuple[str, Requirement]], row: EnvironmentFacts) -> Iterator[Conflict]:
    for text, package in parsed:
        version = row.version_of(normalized_name(package.name))
        # Only pip can evaluate a marker, on the interpreter itself.
        if version is None or package.marker:
            continue
        fits = any(package.specifier.contains(each, prereleases=True) for each in versions_in(version))
        if package.url or not fits:
            yield Conflict(text, normalized_name(package.name), " or ".join(versions_in(version)))
