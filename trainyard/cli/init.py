# SPDX-License-Identifier: Apache-2.0
"""`trainyard init`: a stack file that passes `check`, from training scripts."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from catalog.platforms import default_platform, platform_spellings, require_capability
from components.platform.new_stacks import Answer, Caller, NewStacks
from schemas.name_suggestions import count_noun, suggest_name
from trainyard.bring.new_stack_file import named_apart, new_stack_file
from trainyard.bring.training_scripts import REQUIREMENTS, ScriptError, TrainingScript, read_training_script, valid_name
from trainyard.cli.out import ask_text, say, say_aside
from trainyard.cli.planning import profile_option
from trainyard.local.places import EXAMPLES, own_command, project_stacks, stacks_words

_ENVIRONMENT = "dev"


@click.command()
@click.argument("scripts", nargs=-1, metavar="[SCRIPT]...", type=click.Path(path_type=Path))
@click.option("--stack", "name", metavar="NAME", help="The name of the stack; by default TEAM-ENVIRONMENT.")
@click.option(
    "--platform",
    type=click.Choice(sorted(platform_spellings())),
    default=default_platform(),
    show_default=True,
    help="Where it will train.",
)
@click.option("--local", is_flag=True, help="For the local cloud only: its account, whatever accounts you have.")
@click.option("--line", metavar="COMMAND", help="How the script is started elsewhere: `torchrun --nnodes 2 train.py`.")
@click.option("--nodes", type=click.IntRange(1, 10_000), help="The number of nodes of each job.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="An answer: team, environment, region, …")
@click.option("--yes", is_flag=True, help="Ask nothing, and take the defaults.")
@click.option(
    "--stacks", type=click.Path(path_type=Path), help="The folder for the file; by default the project's, or this one."
)
@profile_option
def init(
    scripts: tuple[Path, ...],
    name: str | None,
    platform: str,
    local: bool,
    line: str | None,
    nodes: int | None,
    settings: tuple[str, ...],
    yes: bool,
    stacks: Path | None,
    profile: str | None,
) -> None:
    """Write a stack file for training scripts, one job for each.

    SCRIPT is a Python script, a shell script that starts one, or a folder with one; by default this folder. Framework,
    nodes, processes, arguments and packages follow from its imports, from requirements.txt beside it, and from lines
    with torchrun, accelerate, deepspeed or srun in it, in shell scripts beside it and in the README. Nothing is run.

    Never overwrites a file. Exits with 1 if `check` finds errors in the new file.
    """
    if line and len(scripts) > 1:
        raise click.UsageError("--line starts one script: name that one")
    try:
        read = [read_training_script(script, line or "") for script in scripts or (Path(),)]
    except ScriptError as error:
        raise click.UsageError(str(error)) from error
    if nodes:
        read = [replace(script, nodes=max(nodes, sum(role.minimum for role in script.framework.roles.values())))
                for script in read]  # fmt: skip
    platform = platform_spellings()[platform]
    here = require_capability(platform, NewStacks)
    found = here.find_answers(Caller(os.environ, Path.home(), profile, local))
    if found.problem:
        say_aside(
            f"{found.problem}.\nSo the file names the account of the local cloud; --profile names another profile."
        )
    asks = sys.stdin.isatty() and not yes
    own = (
        Answer("team", valid_name(Path.cwd().name, "team"), "trainyard:team", "", "Team, the first part of every name"),
        Answer("environment", _ENVIRONMENT, "trainyard:environment", "", "Environment, the second part"),
    )
    answers = settle_answers((*own, *found.values), settings, asks)
    values = {answer.key: answer.value for answer in answers}
    stack = name or f"{values['team']}-{values['environment']}"
    folder = stacks or _own_stacks()
    file = folder / f"Pulumi.{stack}.yaml"
    if asks:
        read = [_with_arguments(script) for script in read]
    new = new_stack_file(
        {"team": values["team"], "environment": values["environment"]},
        here.stack_keys(values), _comments(answers), named_apart(read), here, folder,
    )  # fmt: skip
    _write_new_file(file, new.text)
    say(f"{file} is written: {_jobs_in_words(new.jobs)}.")
    for script in read:
        _write_requirements(script)
        for remark in script.remarks:
            say(f"  {remark}")
        if script.arguments_needed:
            say(f"  {script.command[0]} needs arguments: add {', '.join(script.arguments_needed)} to its `command`")
    _check_and_say_next(file, stack, folder, found.local)


def settle_answers(answers: Iterable[Answer], settings: Iterable[str], asks: bool) -> list[Answer]:
    """The answers with what people set by options, or are asked."""
    given = dict[str, str]()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not value:
            raise click.UsageError(f"--set {setting}: write KEY=VALUE")
        given[key] = value
    answers = list(answers)
    known = [answer.key for answer in answers]
    if unknown := next((key for key in given if key not in known), None):
        raise click.UsageError(f"--set {unknown}: there is no such answer here: {suggest_name(unknown, known)}")
    settled = []
    for answer in answers:
        if answer.key in given:
            answer = replace(answer, value=given[answer.key], source="")
        elif asks and answer.question:
            said = ask_text(answer.question, answer.value)
            answer = answer if said == answer.value else replace(answer, value=said, source="")
        settled.append(answer)
    return settled


def _with_arguments(script: TrainingScript) -> TrainingScript:
    """The script with the arguments that it needs, from the terminal."""
    needed = script.arguments_needed
    said = ask_text(f"Arguments of {script.command[0]}, which needs {', '.join(needed)}", "") if needed else ""
    try:
        words = shlex.split(said)
    except ValueError as error:
        raise click.UsageError(f"`{said}` cannot be split into words: {error}") from error
    return replace(script, command=(*script.command, *words), arguments_needed=()) if words else script


def _jobs_in_words(jobs: Mapping[str, Mapping[str, Any]]) -> str:
    words = []
    for name, job in jobs.items():
        strategy = f"/{job['strategy']}" if "strategy" in job else ""
        words.append(f"job {name} with {job['framework']}{strategy}, {count_noun(sum(job['roles'].values()), 'node')}")
    return "; ".join(words)


def _comments(answers: Iterable[Answer]) -> Mapping[str, str]:
    """Where values come from, by the keys of the file."""
    sources = dict[str, list[str]]()
    for answer in answers:
        if answer.source:
            sources.setdefault(answer.place, []).append(answer.source)
    return {place: f"{'; '.join(dict.fromkeys(texts))}.".capitalize() for place, texts in sources.items()}


def _own_stacks() -> Path:
    """The project's folder of stack files. Trainyard's own examples are nobody's project."""
    found = project_stacks()
    return Path() if found == EXAMPLES and not Path.cwd().is_relative_to(EXAMPLES.parent) else found


def _write_new_file(file: Path, text: str) -> None:
    try:
        # Never through a link either: "x" refuses whatever has this name.
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise click.UsageError(
            f"{file} exists already, and is never overwritten: name another stack with --stack NAME"
        ) from None
    except FileNotFoundError:
        raise click.UsageError(f"the folder {file.parent}/ does not exist") from None


def _write_requirements(script: TrainingScript) -> None:
    """A list of the packages that a script imports and nothing lists. A file that is there stays as it is."""
    if not script.missing:
        return
    names = " ".join(script.missing)
    file = script.folder / REQUIREMENTS
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write("".join(f"{package}\n" for package in script.missing))
        say(f"{file} is written too: {names}, which the script imports.")
    except FileExistsError:
        say(f"  {file} lacks {names}, which the script imports: add what is missing.")


def _check_and_say_next(file: Path, stack: str, folder: Path, is_local: bool) -> None:
    """Shows what `check` says, and what to type next. Ends with 1 if the file has errors."""
    from schemas.judge import judge_file
    from trainyard.cli.render import findings_text

    judged = judge_file(file, str(file))
    if judged.findings:
        say(findings_text([judged], False))
    if judged.errors:
        sys.exit(1)
    trainyard, where = own_command(), shlex.join(["", *stacks_words(folder)]).removeprefix("''")
    if is_local:
        say(f"Next: {trainyard} up {stack} --local{where}")
    else:
        say(f"Next, to try it on this machine: {trainyard} rehearse {stack}{where}")
        say(f"With your account: pulumi stack init {stack} && pulumi up -s {stack}")
