# SPDX-License-Identifier: Apache-2.0
"""`trainyard environments`: lists, makes and removes what stands in for container images on this machine."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from schemas.name_suggestions import count_noun
from trainyard.cli.out import ask_yes_or_no, print_json, say
from trainyard.cli.planning import stacks_option


@click.group("environments", invoke_without_command=True)
@click.pass_context
def environments(context: click.Context) -> None:
    """List, make or remove what stands in for container images on this machine."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@environments.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool = False) -> None:
    """List every environment: ready, or the reason why not and what to do."""
    from localcloud.environments.environment_rows import environment_rows
    from localcloud.environments.find import Environment, find_environment
    from localcloud.environments.layers import usable_layers

    states: dict[str, dict[str, object]] = {}
    for row in environment_rows().values():
        environment = find_environment(row.name)
        cost = {"serves": list(row.serves), "summary": row.summary, "megabytes": row.megabytes, "minutes": row.minutes}
        if isinstance(environment, Environment):
            state = {"ready": True, "interpreter": str(environment.interpreter), "holds": environment.says}
        else:
            state = {"ready": False, "reason": environment.reason, "remedy": environment.remedy}
        states[row.name] = {**cost, **state}
    for name, layer in usable_layers().items():
        summary = f"packages of a job's `requirements`, over {name.partition('+')[0]}"
        cost = {"serves": [], "summary": summary, "megabytes": 0, "minutes": 0}
        states[name] = {**cost, "ready": True, "interpreter": str(layer.interpreter), "holds": layer.says}
    if as_json:
        print_json(json.dumps(states, indent=2))
        return
    width = max(map(len, states))
    lines = []
    for name, facts in states.items():
        lines.append(f"{name:{width}}  {'ready  ' if facts['ready'] else 'missing'}  {facts['summary']}")
        if facts["ready"]:
            lines.append(f"{'':{width}}           {facts['holds']}: {facts['interpreter']}")
        else:
            lines.append(f"{'':{width}}           {facts['reason']}. {facts['remedy']}")
            if facts["megabytes"]:
                lines.append(f"{'':{width}}           costs {facts['megabytes']} MB, {facts['minutes']} min")
    say("\n".join(lines))


@environments.command("make")
@click.argument("names", nargs=-1)
@click.option("--apt", is_flag=True, help="As root, also install the Debian packages that are needed.")
@click.option("--stack", metavar="STACK_OR_FILE", help="Make what the jobs of a stack need, with their `requirements`.")
@stacks_option
def make_command(names: tuple[str, ...], apt: bool, stack: str | None, stacks: Path) -> None:
    """Make the environments NAMES that are missing; without a name, all."""
    from localcloud.environments.environment_rows import environment_rows
    from schemas.name_suggestions import suggest_name

    for name in names:
        if name not in environment_rows():
            raise click.UsageError(f"no environment `{name}`: {suggest_name(name, list(environment_rows()))}")
    if stack is None:
        if not _make_all(names or tuple(environment_rows()), apt):
            sys.exit(1)
        return
    from localcloud.environments.find import Environment
    from trainyard.cli.planning import find_stack_file, plan_or_exit
    from trainyard.engine.progress import Progress
    from trainyard.local.environments import chosen_for, find_job_environment, make_environments, require_fitting

    plan, folder = plan_or_exit(stack, stacks, "text"), find_stack_file(stack, stacks).parent
    jobs = plan.jobs.values()
    require_fitting(jobs, folder)
    needed = [choice.row.name for choice in chosen_for(jobs, folder) if choice.row]
    if not _make_all(tuple(dict.fromkeys((*names, *needed))), apt):
        sys.exit(1)
    # The packages of the jobs are installed over the environments.
    make_environments(jobs, folder, Progress())
    for job in jobs:
        environment = find_job_environment(job, folder)
        holds = environment.says if isinstance(environment, Environment) else environment.reason
        say(f"{job.name}: {environment.name}: {holds}")


@environments.command("prune")
@click.option(
    "--all", "every", is_flag=True, help="Also the environments that this release uses. `up` makes them anew."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def prune_command(every: bool, yes: bool) -> None:
    """Remove the environments of this machine that nothing uses: those of other releases, and incomplete ones."""
    from localcloud.control import running_homes
    from localcloud.environments.cache import remove_unless_locked
    from localcloud.environments.prune import find_prunable

    if running := sorted(running_homes()):
        homes = "\n".join(f"  trainyard cloud stop --home {shlex.quote(str(home))}" for home in running)
        raise click.ClickException(f"Local clouds run, and their nodes may use any environment. First:\n{homes}")
    found = find_prunable(every)
    if not found:
        say("Nothing to remove." if every else "Nothing to remove. With --all, all environments are removed.")
        return
    for unused in found:
        say(f"{_whole_megabytes(unused.size):>9}  {unused.folder}: {unused.reason}")
    total = _whole_megabytes(sum(unused.size for unused in found))
    if not yes:
        ask_yes_or_no(f"Remove {count_noun(len(found), 'folder')}, {total}?", abort=True)
    for unused in found:
        if not remove_unless_locked(unused.folder):
            say(f"Kept: another command is making {unused.folder}.")
    say(f"Removed, {total}.")


def _whole_megabytes(size: int) -> str:
    return f"{round(size / 1e6):,} MB"


def _make_all(names: tuple[str, ...], apt: bool) -> bool:
    """Makes environments. False if one could not be made; the others are made nonetheless."""
    from localcloud.environments.environment_rows import environment_rows
    from localcloud.environments.make import make_environment
    from localcloud.environments.network_tools import make_network_tools_if_possible
    from localcloud.environments.watched_commands import MakeError
    from trainyard.engine.progress import Progress

    failed = []
    make_network_tools_if_possible(Progress())
    for name in names:
        if name not in environment_rows():
            continue
        try:
            made = make_environment(name, Progress(), apt)
        except (MakeError, OSError) as error:
            failed.append(name)
            say(f"Error: {error}", err=True)
        else:
            say(f"{name}: {made.says}")
    return not failed
