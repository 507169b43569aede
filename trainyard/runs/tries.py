# SPDX-License-Identifier: Apache-2.0
"""A try: planned as one more run of its job, prepared from what is deployed, and started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from catalog.platforms import platform_in, require_capability
from catalog.secret_looks import names_secret
from components.plan.build import plan_of
from components.platform.calls import Call, ProviderError
from components.platform.client import RunClients, Runs, UnknownPlaceError, Where
from components.platform.inputs import with_defaults
from components.platform.runs import NodeRun, fingerprint_of_try, run_spec
from components.platform.tries import PREFIX, PlannedTry, ReadyTry, TryError, WantedTry, new_name
from schemas.checks import check_meaning
from schemas.each import with_each
from schemas.findings import at
from schemas.judge import Judged
from schemas.model import EnvValue, Job, Run, Secret
from schemas.name_suggestions import count_noun, quoted_list, suggest_name


def runs_for_try(where: Where) -> Runs:
    name = platform_in(where.config)
    try:
        # The bucket is the plan's.
        return require_capability(name, RunClients).of_caller(replace(where, bucket=None))
    except UnknownPlaceError:
        raise TryError(f"the stack runs on {name}: nothing can be tried there yet") from None


def prepare_try(runs: Runs, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
    """Raises TryError if nothing is deployed, or if the caller may not read it."""
    with _access_explained(runs, planned):
        return runs.prepare_try(call, planned, folder)


def start_try(runs: Runs, call: Call, ready: ReadyTry) -> Sequence[NodeRun]:
    """Starts every node. If one cannot be started, or the user interrupts, it ends those that were started: nobody
    would know of them, and they would cost money."""
    planned = ready.planned
    spec = run_spec(f"try of {planned.plan.stack}: {planned.title}", with_defaults(dict(ready.inputs)))
    # The fingerprint marks it as a run that is in no state. The user's access is not new, so there is no wait for it.
    fingerprint = fingerprint_of_try(planned.like.name if planned.like else "", spec.fingerprint)
    spec = replace(spec, fingerprint=fingerprint, timeouts=replace(spec.timeouts, access=0.0))
    with _access_explained(runs, planned):
        try:
            return list(runs.ensure(call, spec, ()))
        except BaseException:
            runs.cancel(call, runs.started(call, spec))
            raise


@contextmanager
def _access_explained(runs: Runs, planned: PlannedTry) -> Iterator[None]:
    try:
        yield
    except ProviderError as error:
        if lacked := runs.access_lacked(planned, error):
            raise TryError(f"{error.cause}\n{lacked}") from error
        raise


def plan_try(judged: Judged, wanted: WantedTry, region: str | None = None) -> PlannedTry:
    """Plans a try as one more run of its job, in the same way as the runs of the stack file. Calls no cloud.

    `region`: the region of the deployed stack, if it is not that of the file. The local cloud has only one.
    """
    stack = judged.stack
    if stack is None or judged.facts is None:
        raise ValueError("a stack with errors has no tries")
    stack = replace(stack, region=region or stack.region)
    if not stack.jobs:
        raise TryError(f"{stack.name} has no jobs")
    if wanted.job not in stack.jobs:
        raise TryError(f"no job `{wanted.job}` in {stack.name}: {suggest_name(wanted.job, stack.jobs)}")
    job = with_each(stack.jobs[wanted.job])
    like = _base_run(wanted, job)
    name = wanted.name or new_name()
    if name in job.runs:
        raise TryError(f"the job {wanted.job} has a run {name}: give the try another --name")
    base = job.runs[like] if like else Run()
    # `attempt` and `was` are not copied, so that the try has a folder of its own.
    args = base.args if wanted.args is None else wanted.args
    own = Run(args=args, env={**base.env, **(wanted.env or {})}, until="accepted")
    runs = {**({like: base} if like else {}), name: own}
    trying = replace(stack, jobs={wanted.job: replace(job, runs=runs)})
    here = at("jobs", wanted.job, "runs", name)
    wrongs = [
        finding
        for finding in check_meaning(trying, judged.facts)
        if finding.severity == "error" and finding.path[: len(here)] == here
    ]
    if wrongs:
        lines = [f"{finding.code} {finding.message}\n  {finding.remedy}" for finding in wrongs]
        raise TryError(f"{count_noun(len(wrongs), 'mistake')} in the arguments of the try:\n" + "\n".join(lines))
    plan = plan_of(replace(judged, stack=trying))
    planned = plan.jobs[wanted.job]
    return PlannedTry(plan, planned, planned.runs[like] if like else None, planned.runs[name])


def try_environment(given: Mapping[str, str]) -> dict[str, EnvValue]:
    """Variables of a command line. One with the name of a secret is treated as a secret: launchers never print it."""
    return {name: Secret(value) if names_secret(name, value) else value for name, value in given.items()}


def _base_run(wanted: WantedTry, job: Job) -> str | None:
    if wanted.run is None:
        return next(iter(job.runs), None)
    if wanted.run in job.runs:
        return wanted.run
    if wanted.run.startswith(PREFIX):
        raise TryError(
            f"`{wanted.run}` is a try; name the run to start from: {quoted_list(job.runs) or 'there is none'}"
        )
    if not job.runs:
        raise TryError(f"the job {wanted.job} has no runs in the stack file: name the job alone")
    raise TryError(f"no run `{wanted.run}` of {wanted.job}: {suggest_name(wanted.run, job.runs)}")
