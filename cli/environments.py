# SPDX-License-Identifier: Apache-2.0
"""`trainyard environments`: lists and makes what stands in for container images on this machine."""

from __future__ import annotations

import json
import sys

import click

from cli.out import json_data, say


@click.group("environments", invoke_without_command=True)
@click.pass_context
def environments(context: click.Context) -> None:
    """List or make what stands in for container images on this machine."""
    if context.invoked_subcommand is None:
        context.invoke(list_command)


@environments.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool = False) -> None:
    """List every environment: ready, or the reason why not and what to do."""
    from localcloud.environments.find import Environment, find
    from localcloud.environments.rows import rows

    states = {}
    for row in rows().values():
        environment = find(row.name)
        cost = {"serves": list(row.serves), "summary": row.summary, "megabytes": row.megabytes, "minutes": row.minutes}
        if isinstance(environment, Environment):
            state = {"ready": True, "interpreter": str(environment.interpreter), "holds": environment.says}
        else:
            state = {"ready": False, "reason": environment.reason, "remedy": environment.remedy}
        states[row.name] = {**cost, **state}
    json_data(json.dumps(states, indent=2)) if as_json else say("\n".join(_lines(states)))


def _lines(states: dict[str, dict[str, object]]) -> list[str]:
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
    return lines


@environments.command("make")
@click.argument("names", nargs=-1)
@click.option("--apt", is_flag=True, help="As root, also install the Debian packages that are needed.")
def make_command(names: tuple[str, ...], apt: bool) -> None:
    """Make the environments NAMES that are missing; without a name, all."""
    from engine.progress import Progress
    from localcloud.environments.make import make
    from localcloud.environments.rows import rows
    from localcloud.environments.work import MakeError
    from schemas.names import suggestion

    for name in names:
        if name not in rows():
            raise click.UsageError(f"no environment `{name}`: {suggestion(name, list(rows()))}")
    failed = []
    for name in names or tuple(rows()):
        try:
            made = make(name, Progress(), apt)
        except (MakeError, OSError) as error:
            failed.append(name)
            say(f"Error: {error}", err=True)
        else:
            say(f"{name}: {made.says}")
    if failed:
        sys.exit(1)
