# SPDX-License-Identifier: Apache-2.0
"""What of this machine stands in for a job's image: an environment with its framework, or why there is none."""

from __future__ import annotations

from pathlib import Path

from catalog import frameworks
from components.plan.model import JobPlan
from localcloud.environments.find import Environment, MissingEnvironment, find_for
from localcloud.environments.imports import imported_modules


def environment_of(job: JobPlan, stacks: Path) -> Environment | MissingEnvironment:
    """Where a job can run on this machine, by its framework and the modules that its code imports."""
    folder = job.code.folder if job.code else None
    modules = imported_modules(stacks / folder) if folder else frozenset[str]()
    return find_for(job.framework, job.strategy, modules, team_own=job.framework not in frameworks.names())


def why_untrained(job: JobPlan, stacks: Path) -> str:
    """Why this machine cannot train a job; empty when it can."""
    if job.code is None or job.code.folder is None:
        return "its code comes from git" if job.code else "its code is in its image"
    environment = environment_of(job, stacks)
    if isinstance(environment, Environment):
        return ""
    return f"{environment.reason} ({environment.remedy})" if environment.remedy else environment.reason
