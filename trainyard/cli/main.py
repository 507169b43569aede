# SPDX-License-Identifier: Apache-2.0
"""The command `trainyard`. A subcommand is imported only when it is called, so none waits for another's imports."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from catalog.version import VERSION
from trainyard.cli.errors import ErrorReportingGroup
from trainyard.cli.out import say

# Subcommand -> where its click command is beside this file, and its line in `trainyard --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "access": ("plan:access", "Show who may do what, in words, and what the deployer needs."),
    "check": ("check:check", "Check stack files: shape and meaning, with file, line, reason and remedy."),
    "cloud": ("cloud:cloud", "Control the local cloud: start, stop, status, reset, log, env, faults, push."),
    "convert": ("convert:convert", "Make a stack file of what another system runs, such as a batch script of Slurm."),
    "data": ("data:data", "Move files to and from a stack's bucket: put, get, list."),
    "doctor": ("doctor:doctor", "Say which prerequisite is missing, and by what command to get it."),
    "down": ("down:down", "Take a stack down from the local cloud."),
    "drift": ("drift:drift", "Show what was changed in a stack's cloud outside of Pulumi, and what no stack declares."),
    "environments": ("environments:environments", "List, make or remove what stands in for images on this machine."),
    "image": ("image:image", "Build or push the images of a stack's jobs."),
    "import": ("up:import_", "Import existing resources into a stack on the local cloud."),
    "init": ("init:init_command", "Write a stack file for training scripts."),
    "plan": ("plan:plan", "Show what follows from a stack file, without any cloud."),
    "preview": ("up:preview", "Show what `up` would change on the local cloud."),
    "rehearse": ("rehearse:rehearse", "Try a stack on a local cloud of its own: training, rules and access, for real."),
    "review": (
        "review:review",
        "Say what a change of stacks means: what opens, who gains, what is lost, what it costs.",
    ),
    "run": ("run:run", "Start a deployed job once more with other arguments, without an `up`."),
    "runs": (
        "runs:runs",
        "Show what runs are doing (states by rank, logs, progress), fetch what they left, or end them.",
    ),
    "secret": ("secret:secret", "Write secrets into stack files, encrypted by the stack's own key."),
    "up": ("up:up", "Bring a stack up on the local cloud."),
}


class LazyGroup(ErrorReportingGroup):
    """Finds subcommands in COMMANDS. It does not offer those whose module is missing in this checkout."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name, (place, _) in COMMANDS.items() if _is_there(place))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, _ = COMMANDS.get(cmd_name, ("", ""))
        if not place or not _is_there(place):
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(import_module(f"trainyard.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from schemas.name_suggestions import suggest_name

            ctx.fail(f"no such command `{args[0]}`: {suggest_name(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help reads the table, because it must not import the commands that it describes."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _is_there(place: str) -> bool:
    module = place.split(":")[0]
    path = Path(__file__).parent / module
    return path.with_suffix(".py").exists() or path.joinpath("__init__.py").exists()


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        say(f"trainyard {VERSION}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def main() -> None:
    """Everything distributed training needs, from one Pulumi stack file."""
