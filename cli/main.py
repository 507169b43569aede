# SPDX-License-Identifier: Apache-2.0
"""The command `trainyard`. Each subcommand is imported when it is called: nobody pays for another's imports."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from catalog.version import VERSION
from cli.out import say
from cli.problems import TellingGroup

# Subcommand -> where its click command is, and its line in `trainyard --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "access": ("cli.access:access", "Who may do what, in words, and what the deployer needs."),
    "check": ("cli.check:check", "Judge stack files: shape and meaning, with file, line, reason and remedy."),
    "cloud": ("cli.cloud:cloud", "The local cloud: start, stop, status, reset, log, env."),
    "down": ("cli.down:down", "Take the local stack down again."),
    "environments": ("cli.environments:environments", "What stands in for images on this machine: list, make."),
    "image": ("cli.image:image", "The images of a stack's jobs: build, push."),
    "plan": ("cli.plan:plan", "What a stack file leads to, without any cloud."),
    "preview": ("cli.up:preview", "What `up` would change on the local cloud."),
    "rehearse": (
        "cli.rehearse:rehearse",
        "Try a stack on a local cloud of its own: training, rules and access, for real.",
    ),
    "runs": ("cli.runs:runs", "What runs are doing: states by rank, logs, progress; end them."),
    "up": ("cli.up:up", "Bring a stack up on the local cloud."),
}


class LazyGroup(TellingGroup):
    """Finds subcommands in COMMANDS; those whose module is not part of this checkout are not offered."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for name, (place, _) in COMMANDS.items() if _is_there(place))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, _ = COMMANDS.get(cmd_name, ("", ""))
        if not place or not _is_there(place):
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from schemas.names import suggestion

            ctx.fail(f"no such command `{args[0]}`: {suggestion(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """From the table: help must not import what it describes."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _is_there(place: str) -> bool:
    module = place.split(":")[0]
    path = Path(__file__).parent.parent.joinpath(*module.split("."))
    return path.with_suffix(".py").exists() or path.joinpath("__init__.py").exists()


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        say(f"trainyard {VERSION}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print it.")
def main() -> None:
    """Everything distributed training needs, from one Pulumi stack file."""
