# SPDX-License-Identifier: Apache-2.0
"""`trainyard init`: a stack file that passes `check`, from training scripts."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import click

from catalog.platforms import default_platform, platform_spellings, require_capability
from components.platform.new_stacks import Answer, Caller, NewStacks
from schemas.name_suggestions import suggest_name
from trainyard.bring.model import name_for_stack
from trainyard.bring.script_jobs import jobs_of_scripts, named_apart
from trainyard.bring.stack_text import stack_config, stack_text
from trainyard.bring.training_scripts import REQUIREMENTS, ScriptError, TrainingScript, read_training_script
from trainyard.cli.existing_resources import read_existing, write_import_file
from trainyard.cli.out import ask_text, say, say_aside
from trainyard.cli.planning import profile_option
from trainyard.local.places import EXAMPLES, own_command, project_stacks, stacks_words

_ENVIRONMENT = "dev"
_HEAD = (
    "Written by `trainyard init`. `trainyard check` explains what is wrong with a key, and docs/frameworks.md lists",
    "frameworks, roles and options.",
)


@click.command("init")
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
@click.option(
    "--existing",
    multiple=True,
    metavar="ID",
    help="An OCID, ARN or id of a network, bucket, repository, log group, dynamic group or role that the stack uses.",
)
@click.option(
    "--import", "imports", is_flag=True, help="Let the stack manage these, and write their ids for `pulumi import`."
)
@click.option("--yes", is_flag=True, help="Ask nothing, and take the defaults.")
@click.option(
    "--stacks", type=click.Path(path_type=Path), help="The folder for the file; by default the project's, or this one."
)
@profile_option
def init_command(
    scripts: tuple[Path, ...],
    name: str | None,
    platform: str,
    local: bool,
    line: str | None,
    nodes: int | None,
    settings: tuple[str, ...],
    existing: tuple[str, ...],
    imports: bool,
    yes: bool,
    stacks: Path | None,
    profile: str | None,
) -> None:
    """Write a stack file for training scripts, one job for each.

    SCRIPT is a Python script, a shell script that starts one, or a folder with one; by default this folder. Framework,
    nodes, processes, arguments and packages follow from its imports, from requirements.txt beside it, and from lines
    with torchrun, accelerate, deepspeed or srun in it, in shell scripts beside it and in the README. Nothing is run.

    Resources that exist are read by `--existing`. The stack uses them, or manages them with `--import`.

    Never overwrites a file. Exits with 1 if `check` finds errors in the new file.
    """
    if line and len(scripts) > 1:
        raise click.UsageError("--line starts one script: name that one")
    if imports and not existing:
        raise click.UsageError("--import takes over what --existing names: name it")
    # With resources alone the stack has no jobs: others use what it has.
    read = _read_scripts(scripts or (() if existing else (Path(),)), line or "", nodes)
    platform = platform_spellings()[platform]
    here = require_capability(platform, NewStacks)
    found = here.find_answers(Caller(os.environ, Path.home(), profile, local))
    if found.problem:
        say_aside(
            f"{found.problem}.\nSo the file names the account of the local cloud; --profile names another profile."
        )
    given = _read_settings(settings)
    own = (
        Answer(
            "team", name_for_stack(Path.cwd().name, "team"), "trainyard:team", "", "Team, the first part of every name"
        ),
        Answer("environment", _ENVIRONMENT, "trainyard:environment", "", "Environment, the second part"),
    )
    answers = settle_answers((*own, *found.values), given)
    where, resources = None, None
    if existing:
        config = here.stack_keys({answer.key: answer.value for answer in answers})
        where, resources = read_existing(platform, existing, imports, config, found.local, profile)
        # Resources of trainyard say whose they are.
        answers = settle_answers(answers, {**resources.tags, **given}, anything=True)
    if sys.stdin.isatty() and not yes:
        asked = [answer for answer in answers if answer.question and answer.key not in given]
        said = {answer.key: (ask_text(answer.question, answer.value), answer.value) for answer in asked}
        answers = settle_answers(answers, {key: text for key, (text, offered) in said.items() if text != offered})
        read = [_with_arguments(script) for script in read]
    values = {answer.key: answer.value for answer in answers}
    stack = name or (resources and resources.tags.get("stack")) or f"{values['team']}-{values['environment']}"
    folder = stacks or _own_stacks()
    file = folder / f"Pulumi.{stack}.yaml"
    keys = dict(here.stack_keys(values))
    for key, found_values in (resources.keys if resources else {}).items():
        if read:
            # The frameworks of a network are those of its jobs, where it has some.
            found_values = {name: value for name, value in found_values.items() if name != "frameworks"}
        if found_values:
            keys[key] = {**keys.get(key, {}), **found_values}
    new = jobs_of_scripts(named_apart(read), here, folder)
    config = stack_config(values["team"], values["environment"], {**keys, **new.stack}, new.jobs)
    write_new_file(file, stack_text(_HEAD, config, comments_by_key(answers), new.notes))
    say(f"{file} is written: {new.in_words}.")
    for script in read:
        write_missing_requirements(script)
        for remark in script.remarks:
            say(f"  {remark}")
        if script.arguments_needed:
            say(f"  {script.command[0]} needs arguments: add {', '.join(script.arguments_needed)} to its `command`")
    for remark in resources.remarks if resources else ():
        say(f"  {remark}")
    show_check(file)
    if imports and where:
        write_import_file(file, stack, platform, existing, where)
    else:
        _say_next(stack, folder, found.local)


def _read_scripts(scripts: Iterable[Path], line: str, nodes: int | None) -> list[TrainingScript]:
    try:
        read = [read_training_script(script, line) for script in scripts]
    except ScriptError as error:
        raise click.UsageError(str(error)) from error
    if nodes is None:
        return read
    return [replace(script, nodes=nodes) for script in read]


def _read_settings(settings: Iterable[str]) -> dict[str, str]:
    given = dict[str, str]()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not value:
            raise click.UsageError(f"--set {setting}: write KEY=VALUE")
        given[key] = value
    return given


def settle_answers(answers: Iterable[Answer], given: Mapping[str, str], anything: bool = False) -> list[Answer]:
    """The answers, with those that are given. `anything`: further values are given that are no answers."""
    answers = list(answers)
    known = [answer.key for answer in answers]
    if not anything and (unknown := next((key for key in given if key not in known), None)):
        raise click.UsageError(f"--set {unknown}: there is no such answer here: {suggest_name(unknown, known)}")
    return [
        replace(answer, value=given[answer.key], source="") if answer.key in given else answer for answer in answers
    ]


def _with_arguments(script: TrainingScript) -> TrainingScript:
    """The script with the arguments that it needs, from the terminal."""
    needed = script.arguments_needed
    said = ask_text(f"Arguments of {script.command[0]}, which needs {', '.join(needed)}", "") if needed else ""
    try:
        words = shlex.split(said)
    except ValueError as error:
        raise click.UsageError(f"`{said}` cannot be split into words: {error}") from error
    return replace(script, command=(*script.command, *words), arguments_needed=()) if words else script


def comments_by_key(answers: Iterable[Answer]) -> Mapping[str, str]:
    """Where values come from, by the keys of the file."""
    sources = dict[str, list[str]]()
    for answer in answers:
        if answer.source:
            sources.setdefault(answer.place, []).append(answer.source)
    whole = {place: "; ".join(dict.fromkeys(texts)) for place, texts in sources.items()}
    return {place: f"{text[:1].upper()}{text[1:]}." for place, text in whole.items()}


def _own_stacks() -> Path:
    """The project's folder of stack files. Trainyard's own examples are nobody's project."""
    found = project_stacks()
    return Path() if found == EXAMPLES and not Path.cwd().is_relative_to(EXAMPLES.parent) else found


def write_new_file(file: Path, text: str) -> None:
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


def write_missing_requirements(script: TrainingScript) -> None:
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


def show_check(file: Path) -> None:
    """Shows what `check` says. Ends with 1 if the file has errors."""
    from schemas.judge import judge_file
    from trainyard.cli.render import findings_text

    judged = judge_file(file, str(file))
    if judged.findings:
        say(findings_text([judged], False))
    if judged.errors:
        sys.exit(1)


def _say_next(stack: str, folder: Path, is_local: bool) -> None:
    where = stacks_words(folder)
    if is_local:
        say(f"Next: {shlex.join([own_command(), 'up', stack, '--local', *where])}")
    else:
        say(f"Next, to try it on this machine: {shlex.join([own_command(), 'rehearse', stack, *where])}")
        say(f"With your account: pulumi stack init {stack} && pulumi up -s {stack}")
