# SPDX-License-Identifier: Apache-2.0
"""A try in the terms of the stack file: one more run of its job, checked and planned like the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from catalog.secret_looks import names_secret
from components.plan.build import plan_of
from components.platform.tries import PREFIX, PlannedTry, TryError, WantedTry, new_name
from schemas.checks import check
from schemas.checks.registry import at
from schemas.each import with_each
from schemas.judge import Judged
from schemas.model import EnvValue, Job, Run, Secret, Stack
from schemas.names import listing, plural, suggestion


def plan_try(judged: Judged, wanted: WantedTry, region: str | None = None) -> PlannedTry:
    """`region` is where the stack is deployed, if that is not the file's: the local cloud is in one region only."""
    stack = judged.stack
    if stack is None:
        raise ValueError("a stack with errors has no tries")
    stack = replace(stack, region=region or stack.region)
    job = _job(stack, wanted.job)
    like = _like(wanted, job)
    name = wanted.name or new_name()
    if name in job.runs:
        raise TryError(f"the job {wanted.job} has a run {name}: give the try another --name")
    runs = {**({like: job.runs[like]} if like else {}), name: _run(wanted, job.runs[like] if like else Run())}
    trying = replace(stack, jobs={wanted.job: replace(job, runs=runs)})
    _refuse_findings(replace(judged, stack=trying), wanted.job, name)
    plan = plan_of(replace(judged, stack=trying))
    planned = plan.jobs[wanted.job]
    return PlannedTry(plan, planned, planned.runs[like] if like else None, planned.runs[name])


def environment(given: Mapping[str, str]) -> dict[str, EnvValue]:
    """Variables of a command line. One with the name of a secret is treated as a secret: launchers never print it."""
    return {name: Secret(value) if names_secret(name, value) else value for name, value in given.items()}


def _job(stack: Stack, name: str) -> Job:
    if name in stack.jobs:
        return with_each(stack.jobs[name])
    if not stack.jobs:
        raise TryError(f"{stack.name} has no jobs")
    raise TryError(f"no job `{name}` in {stack.name}: {suggestion(name, stack.jobs)}")


def _like(wanted: WantedTry, job: Job) -> str | None:
    if wanted.run is None:
        return next(iter(job.runs), None)
    if wanted.run in job.runs:
        return wanted.run
    if wanted.run.startswith(PREFIX):
        raise TryError(
            f"`{wanted.run}` is a try; name the run that yours is to be like: {listing(job.runs) or 'there is none'}"
        )
    if not job.runs:
        raise TryError(f"the job {wanted.job} has no runs in the stack file: name the job alone")
    raise TryError(f"no run `{wanted.run}` of {wanted.job}: {suggestion(wanted.run, job.runs)}")


def _run(wanted: WantedTry, like: Run) -> Run:
    """The run that it is like, with other arguments and variables, and a place of its own from its first start."""
    args = like.args if wanted.args is None else wanted.args
    return Run(args=args, env={**like.env, **(wanted.env or {})}, until="accepted")


def _refuse_findings(judged: Judged, job: str, name: str) -> None:
    """What `check` would say of such a run."""
    here = at("jobs", job, "runs", name)
    if judged.stack is None or judged.facts is None:
        raise ValueError("a stack with errors has no tries")
    wrongs = [
        finding
        for finding in check(judged.stack, judged.facts)
        if finding.severity == "error" and finding.path[: len(here)] == here
    ]
    if wrongs:
        lines = [f"{finding.code} {finding.message}\n  {finding.remedy}" for finding in wrongs]
        raise TryError(f"{plural(len(wrongs), 'mistake')} in what the try is given:\n" + "\n".join(lines))
