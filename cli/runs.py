# SPDX-License-Identifier: Apache-2.0
"""`trainyard runs`: what runs are doing, here or in OCI."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.out import ask, json_data, say, say_aside, say_in_colour
from cli.planning import stack_file
from cli.running import running_cloud
from launcher.escaping import terminal
from provider.base.asking import call_of
from schemas.source import read

if TYPE_CHECKING:
    from localcloud.control import Cloud
    from provider.oci.session import Session
    from runstatus.oci.looker import Looker, Wanted
    from runstatus.seen import RunSeen

PROFILE_KEY = "oci:configFileProfile"
COMPARTMENT_KEY = "trainyard:compartment"


class DefaultList(click.Group):
    """`trainyard runs …` is `trainyard runs list …`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@dataclass(frozen=True)
class Asked:
    """Where to look, and for which runs."""

    session: Session
    wanted: Wanted
    cloud: Cloud | None = None

    def looker(self) -> Looker:
        from runstatus.oci.looker import Looker

        looker = Looker(self.session, call_of("runs", say_aside), self.wanted)
        if self.cloud is not None:
            from runstatus.dropped import Witness

            looker.witness = Witness(self.cloud)
        return looker


def run_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which runs, of which cloud."""

    @click.argument("stack", required=False)
    @click.argument("run", required=False, metavar="[JOB[/RUN]]")
    @click.option("--stacks", type=click.Path(path_type=Path), default=Path("stacks"), help="Where stack files are.")
    @click.option("--local", is_flag=True, help="Runs of the local cloud that `trainyard up --local` started.")
    @click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="The local cloud's folder.")
    @click.option("--compartment", metavar="OCID", help="Where the runs are, when no stack file says it.")
    def asked(
        stack: str | None, run: str | None, stacks: Path, local: bool, home: Path | None, compartment: str | None,
        **options: Any,
    ) -> None:  # fmt: skip
        cloud = running_cloud(home) if local or home else None
        command(_asked(stack, run, stacks, cloud, compartment), **options)

    asked.__name__, asked.__doc__ = command.__name__, command.__doc__
    return asked


def _asked(stack: str | None, run: str | None, stacks: Path, cloud: Cloud | None, compartment: str | None) -> Asked:
    from localstacks.oci.sessions import DEPLOYER, session_of
    from provider.oci.session import Session
    from runstatus.oci.looker import Wanted

    config = _config(stack, stacks, optional=cloud is not None)
    if cloud is not None:
        session = session_of(cloud, DEPLOYER)
        compartment = compartment or cloud.compartment
    else:
        session = Session.of({"region": config.get("oci:region"), "profile": config.get(PROFILE_KEY)})
    compartment = compartment or config.get(COMPARTMENT_KEY)
    if not compartment:
        raise click.UsageError(
            "where are the runs? Name a stack, or a compartment with --compartment, or say --local for the local cloud"
        )
    job, _, name = (run or "").partition("/")
    return Asked(session, Wanted(compartment, _stack_name(stack), job or None, name or None), cloud)


def _config(stack: str | None, stacks: Path, optional: bool) -> dict[str, Any]:
    """The stack file's own words: runs can be looked at while the file has errors."""
    if stack is None:
        return {}
    try:
        file = stack_file(stack, stacks)
    except click.UsageError:
        if optional:
            return {}
        raise
    data = read(file).data
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(config, dict):
        raise click.ClickException(f"{file} has no `config:`; `trainyard check {file}` says more")
    return config


def _stack_name(stack: str | None) -> str | None:
    if stack and (stack.endswith((".yaml", ".yml")) or os.sep in stack):
        return Path(stack).stem.removeprefix("Pulumi.")
    return stack


@click.group(cls=DefaultList)
def runs() -> None:
    """What runs are doing: their states by rank, what they print, how far they are.

    \b
    trainyard runs --local                    every run on the local cloud
    trainyard runs watch vision-prod resnet   the runs of a job until they end
    trainyard runs logs vision-prod resnet/base --follow
    trainyard runs cancel vision-prod resnet/base

    Credentials are those of every OCI client, or what `trainyard cloud env` has set. A run is started again by a
    higher `attempt:` in the stack file.
    """


@runs.command("list")
@click.option("--history", is_flag=True, help="Earlier attempts too.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="For whom.")
@run_arguments
def list_(asked: Asked, history: bool, form: str) -> None:
    """Show runs with the state of each rank."""
    from cli import runs_text

    looker = asked.looker()
    looker.wanted = _with_history(looker.wanted, history)
    found = looker.look()
    if form == "json":
        json_data(runs_text.as_json(found))
    elif found:
        say_in_colour(runs_text.text(found, datetime.now(UTC), colour=_colour()), _colour())
    else:
        say(_nothing(asked.wanted))


@runs.command()
@click.option("--every", type=click.FloatRange(min=0.1), default=2.0, metavar="SECONDS", help="How often to look.")
@run_arguments
def watch(asked: Asked, every: float) -> None:
    """Show runs until all of them have ended; exits with 1 when one did not succeed.

    On a terminal the table is refreshed in place; elsewhere each change is one line.
    """
    from cli.runs_text import Screen

    looker, screen = asked.looker(), Screen(sys.stdout.isatty())
    while True:
        found = _some(looker.look(), asked.wanted)
        screen.show(found, datetime.now(UTC))
        if all(run.over for run in found):
            break
        looker.call.stop.wait(every)
    sys.exit(0 if all(run.state == "SUCCEEDED" for run in found) else 1)


@runs.command()
@click.option("--follow", "-f", is_flag=True, help="Go on until the runs have ended.")
@click.option("--rank", "ranks", type=int, multiple=True, help="Only this rank; may be repeated.")
@click.option("--every", type=click.FloatRange(min=0.1), default=2.0, metavar="SECONDS", help="How often to look.")
@run_arguments
def logs(asked: Asked, follow: bool, ranks: tuple[int, ...], every: float) -> None:
    """Print what runs printed, all ranks merged in the order of time, each line with its rank."""
    from runstatus.oci.logs import Merged

    looker = asked.looker()
    merged = Merged(asked.session, looker.call, frozenset(ranks))
    while True:
        found = _some(looker.look(), asked.wanted)
        for line in merged.new(found):
            say(terminal(line))
        if not follow or all(run.over for run in found):
            break
        sys.stdout.flush()
        looker.call.stop.wait(every)
    if not any(node.log for run in found for node in run.nodes):
        raise click.ClickException("these runs keep no log: `trainyard:logs` of the stack file says whether they do")


@runs.command()
@click.option("--yes", is_flag=True, help="Without asking.")
@run_arguments
def cancel(asked: Asked, yes: bool) -> None:
    """End runs that go on: every rank is asked to stop. Start one again with a higher `attempt:` in its stack file."""
    from provider.oci.platform import OciPlatform

    if asked.wanted.stack is None or asked.wanted.job is None:
        raise click.UsageError("which run? Say STACK and JOB, or STACK and JOB/RUN")
    looker = asked.looker()
    alive = [run for run in _some(looker.look(deeply=False), asked.wanted) if not run.over]
    if not alive:
        say("Nothing to end: these runs are over.")
        return
    titles = ", ".join(run.title for run in alive)
    if not yes and not ask(f"End {titles} of {asked.wanted.stack}?"):
        sys.exit(1)
    for run in alive:
        OciPlatform(asked.session).cancel(looker.call, [node.run for node in run.nodes if not node.run.over])
    say(f"Asked to end: {titles}.")


def _with_history(wanted: Wanted, history: bool) -> Wanted:
    from dataclasses import replace

    return replace(wanted, history=history)


def _some(found: list[RunSeen], wanted: Wanted) -> list[RunSeen]:
    if not found:
        raise click.ClickException(_nothing(wanted))
    return found


def _nothing(wanted: Wanted) -> str:
    named = "/".join(filter(None, (wanted.job, wanted.run)))
    of = f" of the stack {wanted.stack}" if wanted.stack else ""
    return (
        f"No runs{f' {named}' if named else ''}{of} in the compartment {wanted.compartment}.\n"
        "`trainyard runs` shows those there are; a stack's runs start with `pulumi up` (`trainyard up --local`)."
    )


def _colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
