# SPDX-License-Identifier: Apache-2.0
"""A whole rehearsal, from the stack file to the report: sets up a cloud and the stack, runs the jobs, judges them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from components.plan.build import plan_file
from components.plan.model import JobPlan, Plan, RunPlan
from components.platform.calls import Tell
from components.platform.local import LocalStackError
from components.platform.rehearsal import People, RehearsalPlatform
from localcloud import admin
from localcloud.control import Cloud
from localcloud.environments import network_tools
from localcloud.environments.find import MissingEnvironment
from localcloud.files import REMEDY, REQUIRED
from localcloud.hosts import users
from schemas.name_suggestions import count_noun
from schemas.unfilled_values import PLACEHOLDERS_ALLOWED
from trainyard.engine.progress import Progress
from trainyard.local.environments import (
    absent_modules,
    find_job_environment,
    make_environments,
    require_fitting,
    why_untrained,
)
from trainyard.local.local_stack import JUDGED, QUIET, LocalStack
from trainyard.rehearsal.disturbed_runs import Explain, disturb_runs
from trainyard.rehearsal.judgement import SUCCEEDED, Observations, judge_rehearsal, with_preflights
from trainyard.rehearsal.model import Rehearsal, RunSeen
from trainyard.rehearsal.mutations import prove_by_mutations
from trainyard.rehearsal.preflight_runs import run_preflights
from trainyard.rehearsal.repeatable_runs import RepeatableRun, compare_with_idle, confirm_predictions
from trainyard.rehearsal.run_evidence import Evidence
from trainyard.rehearsal.stack_files import (
    PreparedStack,
    plan_with_runs,
    prepare_stack,
    prepare_used,
    program_of,
    temporary_home,
)

_TAIL = 30


@dataclass(frozen=True)
class RehearsalOptions:
    """The options of `trainyard rehearse`."""

    nodes: int | None = None
    built_in: bool = False
    prove: bool = False
    confirm: int = 0
    faults: int = 0
    seed: int = 1
    minutes: float = 10.0
    keep: bool = False
    isolation: str = REQUIRED


@dataclass(frozen=True)
class DeployedStack:
    """A stack that is up on its own local cloud. `plan`: of the stack that is up. `written`: of the team's own file."""

    home: Path
    place: LocalStack
    cloud: Cloud
    prepared: PreparedStack
    written: Plan
    plan: Plan
    granted: Plan
    network: Plan
    outputs: Mapping[str, Any]
    platform: RehearsalPlatform
    tell: Tell
    not_proven: tuple[str, ...]
    unisolated: str = ""


def run_rehearsal(
    file: Path, plan: Plan, options: RehearsalOptions, platform: RehearsalPlatform, tell: Tell, explain: Explain
) -> Rehearsal:
    """Rehearses a stack and returns the report. `tell` prints progress, `explain` names the cause of a failed run.
    Everything is removed unless `keep` is set."""
    began = time.monotonic()
    with temporary_home(plan.stack, options.keep) as home:
        deployed = _set_up(file, plan, home, options, platform, tell)
        who = platform.people_of(deployed.cloud, deployed.plan, deployed.granted, deployed.outputs)
        _tell_progress(tell, f"{plan.stack} is up; its runs are started by {who.words}")
        platform.act_as_people(who, deployed.cloud, deployed.outputs)
        evidence = Evidence(platform, deployed.cloud, who, deployed.outputs, tell)
        runs = tuple(_rehearse_runs(deployed, who, evidence, options))
        platform.look_after_runs(who, deployed.cloud, deployed.outputs)
        calls = evidence.calls()
        well = [(run.job, run.run) for run in runs if run.ranks and all(rank.state == SUCCEEDED for rank in run.ranks)]
        runs, not_compared = compare_with_idle(runs, _make_repeatable(deployed, who, well, options), evidence)
        seen = Observations(
            plan.stack, time.monotonic() - began, runs, evidence.read_traffic(), calls, evidence.access_facts(),
            platform.planned_needs(deployed.plan, deployed.network, deployed.granted),
            (*deployed.not_proven, *not_compared),
        )  # fmt: skip
        report = judge_rehearsal(seen)
        passed = [(run.job, run.run) for run in report.runs if run.verdict == "passed"]
        report = with_preflights(report, run_preflights(_make_repeatable(deployed, who, passed, options), plan))
        if options.prove:
            report = replace(report, proof=prove_by_mutations(seen.traffic, seen.calls, seen.access, seen.planned))
            if options.confirm:
                again = _make_repeatable(deployed, who, passed, options)
                report = replace(report, confirmed=confirm_predictions(again, seen, options.confirm, options.seed))
        if options.faults:
            again = _make_repeatable(deployed, who, passed, options)
            faults, left_out = disturb_runs(again, seen, options.faults, options.seed, explain)
            report = replace(report, faults=faults, faults_left_out=left_out)
        if options.keep:
            _tell_progress(tell, f"kept in {home}")
            _tell_progress(
                tell, f"inspect: trainyard runs --home {home / 'cloud'}; trainyard cloud log --home {home / 'cloud'}"
            )
            _tell_progress(tell, f"remove: trainyard cloud reset --home {home / 'cloud'}; rm -r {home}")
        return replace(report, seconds=time.monotonic() - began)


def _set_up(
    file: Path, plan: Plan, home: Path, options: RehearsalOptions, platform: RehearsalPlatform, tell: Tell
) -> DeployedStack:
    prepared = prepare_stack(file, plan, home, options.nodes, options.built_in, platform.machines)
    differences = [
        *prepared.mapped.differences,
        *(f"job {job}: not rehearsed: {why}" for job, whys in prepared.mapped.not_rehearsed.items() for why in whys),
    ]
    if plan.uses:
        stood_in = prepare_used(file, plan, home, tell, platform.machines, platform.place_keys)
        differences += [stood_in] if stood_in else []
    with (home / "pulumi.log").open("w") as output:

        def place_of(name: str) -> LocalStack:
            place = LocalStack(name, home / "stacks", tell, home, output, options.isolation)
            place.env |= {"TRAINYARD_ARTIFACTS": str(home / "artifacts"), PLACEHOLDERS_ALLOWED: "1"}
            return place

        place = place_of(plan.stack)
        network_tools.make_network_tools_if_possible(Progress())
        cloud = place.start_cloud()
        _tell_progress(tell, f"the team's code runs {_account_of_code(cloud)}")
        used = _bring_up_used_stack(place_of, plan, platform, tell) if plan.uses else None
        borrowed = (
            str(place.outputs(used.stack).get("imagePushAddress", "")) if used and "registry" in plan.taken else ""
        )
        local = place.select(plan_file(place.file, _ignore_remark), cloud)
        here = plan_with_runs(local.config, prepared, home)
        require_fitting(here.jobs.values(), place.file.parent)
        make_environments(here.jobs.values(), place.file.parent, Progress())
        differences += _remarks_on_modules(here, place.file.parent)
        place.platform.ready_images(cloud, here, borrowed)
        granted, stood_in_for = platform.stand_in_access(cloud, here, used)
        differences += [*local.remarks, *platform.stand_in_groups(cloud, here), *stood_in_for]
        _bring_stack_up(place, tell)
    outputs = place.outputs()
    network = used if used and "network" in plan.taken else here
    # Without rules, the team's code may run only if that was allowed.
    reason = "" if admin.allows_missing_isolation(cloud) else admin.why_not_enforced(cloud)
    unisolated = f"this machine cannot enforce its security rules: {reason}. {REMEDY}" if reason else ""
    return DeployedStack(
        home, place, cloud, prepared, plan, here, granted, network, outputs, platform, tell,
        tuple(dict.fromkeys(differences)), unisolated,
    )  # fmt: skip


def _remarks_on_modules(plan: Plan, stacks: Path) -> Iterator[str]:
    """Remarks on modules that scripts can import and that the local environment lacks. A script may not need them."""
    for name, job in plan.jobs.items():
        environment, code = find_job_environment(job, stacks), stacks / "code" / name
        if isinstance(environment, MissingEnvironment) or not code.is_dir():
            continue
        if absent := absent_modules(environment, code):
            which = ", ".join(absent)
            yield f"job {name}: its code can import {which}; the environment {environment.name} has no such module"


def _bring_up_used_stack(
    place_of: Callable[[str], LocalStack], plan: Plan, platform: RehearsalPlatform, tell: Tell
) -> Plan:
    """Brings up the stack that this one uses. Returns its plan."""
    used = place_of((plan.uses or "").rpartition("/")[2])
    cloud = used.start_cloud()
    its_plan = plan_file(used.file, _ignore_remark)
    used.select(its_plan, cloud)
    _bring_stack_up(used, tell)
    return its_plan


def _bring_stack_up(place: LocalStack, tell: Tell) -> None:
    _tell_progress(tell, f"bringing up {place.stack}")
    if place.pulumi("up", *QUIET, *JUDGED):
        log = (place.home / "pulumi.log").read_text("utf-8", errors="replace").strip().splitlines()
        raise LocalStackError("\n".join([f"`pulumi up` of {place.stack} failed:", *log[-_TAIL:]]))


def _rehearse_runs(
    deployed: DeployedStack, who: People, evidence: Evidence, options: RehearsalOptions
) -> Iterator[RunSeen]:
    to_start = _run_starter(deployed, who, options)
    for job in deployed.plan.jobs.values():
        reason = _why_not_rehearsed(deployed, job)
        own = deployed.written.jobs[job.name].code
        built_in = options.built_in or not (own and own.folder)
        code = "built-in" if built_in and program_of(deployed.written, job.name) else "own"
        environment = find_job_environment(job, deployed.place.file.parent)
        where = "" if isinstance(environment, MissingEnvironment) else f"environment {environment.name}"
        for run in job.runs.values():
            if reason:
                yield RunSeen(job.name, run.name, job.framework, reason=reason)
                continue
            _tell_progress(deployed.tell, f"running {job.name}/{run.name}: {count_noun(job.nodes, 'node')}")
            repeatable = to_start(job, run)
            started = repeatable.start()
            seen, why = repeatable.watch_to_end(started)
            yield evidence.of_run(started, seen, why, code, where)


def _make_repeatable(
    deployed: DeployedStack, who: People, names: Iterable[tuple[str, str]], options: RehearsalOptions
) -> list[RepeatableRun]:
    again = _run_starter(deployed, who, options)
    return [again(deployed.plan.jobs[job], deployed.plan.jobs[job].runs[run]) for job, run in names]


def _run_starter(
    deployed: DeployedStack, who: People, options: RehearsalOptions
) -> Callable[[JobPlan, RunPlan], RepeatableRun]:
    answers = deployed.platform.answers(
        deployed.cloud, deployed.outputs, list(deployed.place.states()[0].made()), deployed.place.file.parent
    )

    def again(job: JobPlan, run: RunPlan) -> RepeatableRun:
        return RepeatableRun(
            deployed.platform,
            deployed.cloud,
            who,
            deployed.plan,
            job,
            run,
            deployed.outputs,
            answers,
            options.minutes,
            deployed.tell,
        )

    return again


def _why_not_rehearsed(deployed: DeployedStack, job: JobPlan) -> str:
    """Why this job cannot run here at all."""
    if deployed.unisolated:
        return deployed.unisolated
    if not (deployed.place.file.parent / "code" / job.name).exists():
        return "; ".join(deployed.prepared.mapped.not_rehearsed.get(job.name, ()))
    environment = find_job_environment(job, deployed.place.file.parent)
    if isinstance(environment, MissingEnvironment):
        # All environments that can be made here have been made.
        return f"no local environment for {job.framework}: {why_untrained(job, deployed.place.file.parent)}"
    return ""


def _account_of_code(cloud: Cloud) -> str:
    if why_not := admin.why_not_enforced(cloud):
        return (
            "without the plan's rules, or not at all if it must be isolated; if this machine cannot isolate it, it runs"
            f" as you: {why_not}"
        )
    return (
        f"{users.describe_users()}, with its own namespaces and limits, and only the plan's connections (docs/trust.md)"
    )


def _ignore_remark(remark: str) -> None:
    """Ignores remarks on the temporary copy of a stack file. Those on the team's own file were shown before."""


def _tell_progress(tell: Tell, words: str) -> None:
    tell(f"rehearse: {words}")
