# SPDX-License-Identifier: Apache-2.0
"""What of this machine stands in for a job's image: an environment with its framework, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from catalog import frameworks
from components.plan.model import JobPlan, Plan
from localcloud.environments.find import Environment, MissingEnvironment, find_base, find_for
from localcloud.environments.imports import imported_modules
from localcloud.environments.work import MakeError, MakeProgress
from localstacks.errors import LocalStackError

Finder = Callable[..., Environment | MissingEnvironment]


def environment_of(job: JobPlan, stacks: Path) -> Environment | MissingEnvironment:
    """Where a job can run on this machine, by its framework and the modules that its code imports."""
    return _find(find_for, job, stacks)


def base_of(job: JobPlan, stacks: Path) -> Environment | MissingEnvironment:
    """The environment of a job's framework, without the packages of the job."""
    return _find(find_base, job, stacks)


def make_packages(plan: Plan, stacks: Path, tell: MakeProgress) -> None:
    """Installs the packages of the plan's jobs, each over the environment of its framework. A job whose framework is
    not here gets none: nothing can train it here."""
    from localcloud.environments.layers import Wanted, make_layer

    for job in plan.jobs.values():
        packages = job.packages
        if packages is None or job.code is None or job.code.folder is None:
            continue
        base = base_of(job, stacks)
        if isinstance(base, MissingEnvironment):
            continue
        try:
            make_layer(base, Wanted(packages.text, packages.digest, packages.file, packages.places), tell)
        except MakeError as error:
            raise LocalStackError(f"job {job.name}: {error}") from None


def why_untrained(job: JobPlan, stacks: Path) -> str:
    """Why this machine cannot train a job; empty when it can."""
    if job.code is None or job.code.folder is None:
        return "its code comes from git" if job.code else "its code is in its image"
    environment = environment_of(job, stacks)
    if isinstance(environment, Environment):
        return ""
    return f"{environment.reason} ({environment.remedy})" if environment.remedy else environment.reason


def _find(finder: Finder, job: JobPlan, stacks: Path) -> Environment | MissingEnvironment:
    folder = job.code.folder if job.code else None
    modules = imported_modules(stacks / folder) if folder else frozenset[str]()
    team_own = job.framework not in frameworks.names()
    packages = job.packages.digest if job.packages else ""
    return finder(job.framework, job.strategy, modules, team_own=team_own, packages=packages)
