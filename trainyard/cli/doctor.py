# SPDX-License-Identifier: Apache-2.0
"""`trainyard doctor`: which prerequisite is missing, and the command that mends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from catalog.platforms import Lacks, find_capability
from components.platform.client import Where
from components.platform.prerequisites import Prerequisites, Question
from schemas.name_suggestions import count_noun
from trainyard.cli.errors import ResultCommand
from trainyard.cli.out import print_json, say, say_aside
from trainyard.cli.planning import (
    end_with_findings,
    find_stack_file,
    home_option,
    named_place,
    profile_option,
    running_cloud,
    stacks_option,
)
from trainyard.doctor.examine import CheckResult, ask_checks, ask_cloud
from trainyard.doctor.local_checks import local_checks
from trainyard.images.build_push import registry_endpoint

if TYPE_CHECKING:
    from components.platform.images import Endpoint
    from localcloud.control import Cloud


@click.command(cls=ResultCommand)
@click.argument("stack", metavar="[STACK_OR_FILE]", required=False)
@stacks_option
@click.option("--local", is_flag=True, help="Ask the local cloud that runs here.")
@home_option
@profile_option
@click.option(
    "--as", "acts_as", type=click.Choice(["deployer", "user"]), default="deployer", show_default=True,
    help="Whose rights the caller should have: those of who runs `pulumi up`, or of who starts runs.",
)  # fmt: skip
@click.option(
    "--log", type=click.Path(path_type=Path), metavar="FILE",
    help="Only say which known problem this log shows, such as the output of a build or of a run.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)
def doctor(
    stack: str | None, stacks: Path, local: bool, home: Path | None, profile: str | None,
    acts_as: Literal["deployer", "user"], log: Path | None, form: str,
) -> None:  # fmt: skip
    """Say which prerequisite of STACK_OR_FILE is missing, and by what command to get it.

    \b
    trainyard doctor                        this machine, without network
    trainyard doctor vision-prod            also the cloud, before the first `pulumi up`
    trainyard doctor --log build.log        a known problem in a log

    Nothing is changed. Each check is a call or two; what the stack itself makes is not missed before its first `up`.
    Exits with 0 if nothing is missing, with 1 if something is, and with 2 if a question could not be asked.
    """
    if log is not None:
        _explain_log(log, stack, stacks, form)
        return
    cloud = running_cloud(home, named_place(stack, stacks)[0] if stack else "") if local or home else None
    results = _examine(_make_question(stack, stacks, cloud, profile, acts_as, form))
    if form == "json":
        from components.plan.show import json_text

        print_json(json_text([asdict(result) for result in results]))
    else:
        say("\n".join(doctor_lines(stack or "this machine", results)))
    if any(result.problems for result in results):
        sys.exit(1)
    if any(result.unasked for result in results):
        sys.exit(2)


def doctor_lines(subject: str, results: Sequence[CheckResult]) -> Iterator[str]:
    """A single line if nothing is missing."""
    missing = sum(len(result.problems) for result in results)
    unasked = [result for result in results if result.unasked]
    if missing:
        yield f"{subject}: {count_noun(missing, 'problem')} ({count_noun(len(results), 'check')})"
    elif unasked:
        yield f"{subject}: cannot tell: {count_noun(len(unasked), 'question')} could not be asked"
    else:
        yield f"{subject}: nothing is missing ({count_noun(len(results), 'check')})"
    for result in results:
        for problem in result.problems:
            yield f"  {result.title}: {problem.words}"
            yield f"      {problem.remedy}"
    for why, remedy in dict.fromkeys((result.unasked, result.remedy) for result in unasked):
        titles = ", ".join(result.title for result in unasked if result.unasked == why)
        yield f"  not asked ({titles}): {why}"
        if remedy:
            yield f"      {remedy}"
    yield from dict.fromkeys(f"  note: {remark}" for result in results for remark in result.remarks)


def _make_question(
    stack: str | None, stacks: Path, cloud: Cloud | None, profile: str | None, acts_as: Literal["deployer", "user"],
    form: str,
) -> Question:  # fmt: skip
    environment = {**os.environ, **(cloud.env_of_caller() if cloud is not None else {})}

    def endpoint(host: str) -> Endpoint:
        return registry_endpoint(host, environment)

    if stack is None:
        return Question(Where({}, cloud, profile=profile), environment, endpoint, acts_as=acts_as)
    from components.plan.build import StackFileError, plan_file
    from components.platform.local import deployed_files
    from trainyard.cli.run_selection import where_of

    name, folder = named_place(stack, stacks)
    # What is up on the local cloud has other ids than the team's file.
    copy = deployed_files(cloud.home, stacks).get(name) if cloud is not None else None
    file = copy or find_stack_file(stack, stacks)
    try:
        plan = plan_file(file, say_aside, folder if copy else None)
    except StackFileError as error:
        end_with_findings(error.judged, form)
    return Question(where_of(file, cloud, None, profile), environment, endpoint, plan, acts_as)


def _examine(question: Question) -> list[CheckResult]:
    results = ask_checks(list(local_checks(question)))
    plan = question.plan
    if plan is None:
        return results
    if any(problem.stops for result in results for problem in result.problems):
        return [*results, CheckResult("cloud", unasked="the credentials cannot be used")]
    prerequisites = find_capability(plan.platform, Prerequisites)
    if isinstance(prerequisites, Lacks):
        return [*results, CheckResult("cloud", unasked=prerequisites.reason)]
    return [*results, *ask_cloud(prerequisites.cloud_checks(question, plan))]


def _explain_log(log: Path, stack: str | None, stacks: Path, form: str) -> None:
    from trainyard.doctor.logs import find_symptom_in_log
    from trainyard.why.collect import team_symptoms_in
    from trainyard.why.symptoms import known_symptoms

    notes: list[str] = []
    team = team_symptoms_in(find_stack_file(stack, stacks).parent, notes) if stack else ()
    found = find_symptom_in_log(log, (*team, *known_symptoms()))
    for note in notes:
        say_aside(note)
    if form == "json":
        row = found and {"line": found.line, **{key: getattr(found.symptom, key) for key in _OF_SYMPTOM}}
        from components.plan.show import json_text

        print_json(json_text(row))
    elif found is None:
        say(f"{log}: no known problem")
    else:
        say(f"{log}: its program {found.symptom.meaning}\n  {found.line.strip()}")
        say(f"  look at: {found.symptom.look}\n      {found.symptom.remedy}")
    if found is not None:
        sys.exit(1)


_OF_SYMPTOM = ("kind", "meaning", "look", "remedy")
