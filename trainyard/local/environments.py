# SPDX-License-Identifier: Apache-2.0
"""The local environment that stands in for a job's image, or the reason why there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from catalog import frameworks
from catalog.environments import Choice, Need, requirement_lines, requirement_of
from catalog.imports import imported_modules
from components.plan.model import JobPlan, Plan
from components.platform.local import LocalStackError
from localcloud.environments.environment_rows import EnvironmentRow, environment_rows
from localcloud.environments.find import (
    Environment,
    MissingEnvironment,
    choose_here,
    find_environment_for,
    missing_packages,
)
from localcloud.environments.make import Obstacle, debian_packages_command, describe_cost, find_obstacle, rows_to_make
from localcloud.environments.watched_commands import MakeError, MakeProgress
from trainyard.engine.isolated import isolated_python

FIT = "Ask for versions that fit, or leave the package out: images keep their framework's packages too."
# Finds out which modules exist, without importing any.
_LOOK_FOR_MODULES = (
    "import importlib.util, json, sys; print(json.dumps([n for n in sys.argv[1:] if not importlib.util.find_spec(n)]))"
)
_LOOK_SECONDS = 60


@dataclass(frozen=True)
class JobEnvironment:
    """The environment chosen for a job. Without `row`, no environment fits."""

    job: JobPlan
    choice: Choice

    @property
    def row(self) -> EnvironmentRow | None:
        return environment_rows()[self.choice.fitting[0].name] if self.choice.fitting else None

    @property
    def obstacle(self) -> Obstacle | None:
        """Why this machine cannot make it."""
        return find_obstacle(self.row) if self.row else None

    @property
    def conflict(self) -> str:
        """The requirement that no environment of the framework meets, with its line. Empty if there is none."""
        if self.row or not self.choice.conflicts or not self.choice.nearest:
            return ""
        conflict, packages = self.choice.conflicts[0], self.job.packages
        lines = packages.text.splitlines() if packages else []
        places = packages.places if packages else ()
        place = next(
            (at for at, line in zip(places, lines, strict=False) if requirement_of(line) == conflict.requirement), ""
        )
        where = f"{place}: " if place else ""
        nearest = self.choice.nearest.name
        return f"{where}`{conflict.requirement}` does not fit {conflict.has}, which the environment `{nearest}` has"


def find_job_environment(job: JobPlan, stacks: Path) -> Environment | MissingEnvironment:
    """The environment for a job on this machine, chosen by framework, imported modules and requirements."""
    return find_environment_for(need_of(job, stacks), job.packages.digest if job.packages else "")


def need_of(job: JobPlan, stacks: Path) -> Need:
    """What a job needs of an environment."""
    folder = job.code.folder if job.code else None
    modules = imported_modules(stacks / folder) if folder else frozenset[str]()
    lines = requirement_lines(job.packages.text) if job.packages else ()
    return Need(job.framework, job.strategy, modules, lines, job.framework not in frameworks.framework_names())


def chosen_for(jobs: Iterable[JobPlan], stacks: Path) -> tuple[JobEnvironment, ...]:
    """The environments of the jobs whose code is on this machine. Code in an image or in git does not run here."""
    here = (job for job in jobs if job.code and job.code.folder)
    return tuple(JobEnvironment(job, choose_here(need_of(job, stacks))) for job in here)


def require_fitting(jobs: Iterable[JobPlan], stacks: Path) -> None:
    """Raises LocalStackError if no environment of a job's framework meets the job's requirements."""
    chosen = chosen_for(jobs, stacks)
    if conflicts := [f"job {job.job.name}: {job.conflict}" for job in chosen if job.conflict]:
        raise LocalStackError("\n".join([*conflicts, FIT]))


def require_makeable(jobs: Iterable[JobPlan], stacks: Path) -> None:
    """Raises LocalStackError, with the remedy, if an environment of these jobs cannot be made here. Called before
    anything is made."""
    every = tuple(jobs)
    require_fitting(every, stacks)
    chosen = chosen_for(every, stacks)
    obstacles = [find_obstacle(environment_rows()[name]) for name in _environment_names(chosen)]
    blocked = [obstacle for obstacle in obstacles if obstacle]
    if not blocked:
        return
    # A line for each environment, then what to type: one command for all Debian packages.
    lines, names, remedies = [], [], []
    absent: dict[str, None] = {}
    for reason in blocked:
        in_need = ", ".join(other.job.name for other in chosen if other.row and other.row.name == reason.name)
        lines.append(
            f"job {in_need} needs the local environment `{reason.name}`, which cannot be made here: {reason.reason}"
        )
        packages = missing_packages(environment_rows()[reason.name])
        names.append(reason.name)
        absent |= dict.fromkeys(packages)
        remedies += [] if packages else [reason.remedy]
    remedies[:0] = [debian_packages_command(names, list(absent))] if absent else []
    raise LocalStackError("\n".join([*lines, f"First: {'; '.join(dict.fromkeys(remedies))}"]))


def make_environments(jobs: Iterable[JobPlan], stacks: Path, tell: MakeProgress) -> None:
    """Makes the environments that these jobs need, as far as this machine can, and adds the jobs' packages."""
    from localcloud.environments.layers import LayerRequirements, make_layer
    from localcloud.environments.make import make_environment

    every = tuple(jobs)
    for line in environment_decisions(every, stacks):
        tell.say(line)
    chosen = chosen_for(every, stacks)
    able = [environment for environment in chosen if environment.row and not environment.obstacle]
    if len(missing := rows_to_make(_environment_names(able))) > 1:
        tell.say(f"making the local environments of this stack: {describe_cost(missing)}, once per machine")
    for environment in able:
        assert environment.row
        try:
            base, packages = make_environment(environment.row.name, tell), environment.job.packages
            if packages:
                make_layer(
                    base, LayerRequirements(packages.text, packages.digest, packages.file, packages.places), tell
                )
        except (MakeError, OSError) as error:
            raise LocalStackError(f"job {environment.job.name}: {error}") from None


def environment_decisions(jobs: Iterable[JobPlan], stacks: Path) -> tuple[str, ...]:
    """A line for each job whose requirements changed the choice of its environment."""
    every = ((environment.job, environment.choice.decision) for environment in chosen_for(jobs, stacks))
    return tuple(
        f"job {job.name} runs in the environment {decision}: {job.packages.file}"
        for job, decision in every
        if decision and job.packages
    )


def what_to_make(plan: Plan, stacks: Path) -> str:
    """The text that says what `up` will make first. Empty if everything is installed."""
    every = chosen_for(plan.jobs.values(), stacks)
    chosen = [environment for environment in every if environment.row and not environment.obstacle]
    missing = rows_to_make(_environment_names(chosen))
    jobs = [environment.job for environment in chosen]
    without = [
        job.packages.file
        for job in jobs
        if job.packages and isinstance(find_job_environment(job, stacks), MissingEnvironment)
    ]
    listed = f"the packages of {', '.join(dict.fromkeys(without))}" if without else ""
    return " and ".join(filter(None, [f"the environments {describe_cost(missing)}" if missing else "", listed]))


def why_untrained(job: JobPlan, stacks: Path) -> str:
    """Why this machine cannot train a job. Empty if it can, now or once `up` has made the environment."""
    if job.code is None or job.code.folder is None:
        return "its code comes from git" if job.code else "its code is in its image"
    (chosen,) = chosen_for((job,), stacks)
    if blocked := chosen.obstacle:
        return f"its environment `{blocked.name}` cannot be made on this machine: {blocked.reason} ({blocked.remedy})"
    if chosen.row:
        return ""
    missing = find_job_environment(job, stacks)
    assert isinstance(missing, MissingEnvironment)
    return f"{missing.reason} ({missing.remedy})" if missing.remedy else missing.reason


def absent_modules(environment: Environment, code: Path) -> tuple[str, ...]:
    """The top-level modules that the scripts of a folder import and that neither the folder nor the environment has.

    A script may work without some of them, but train differently."""
    own = {path.stem for path in code.iterdir()} | set(sys.stdlib_module_names)
    wanted = sorted(imported_modules(code) - own)
    if not wanted:
        return ()
    words = isolated_python("-c", _LOOK_FOR_MODULES, *wanted, python=environment.interpreter)
    done = subprocess.run(words, capture_output=True, text=True, timeout=_LOOK_SECONDS, check=False)
    return tuple(json.loads(done.stdout)) if done.returncode == 0 else ()


def _environment_names(chosen: Iterable[JobEnvironment]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(environment.row.name for environment in chosen if environment.row))
