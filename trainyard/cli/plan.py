# SPDX-License-Identifier: Apache-2.0
"""`trainyard plan`: shows what follows from a stack file, without any cloud."""

from __future__ import annotations

from pathlib import Path

import click

from components.plan import show
from schemas.names import suggestion
from trainyard.cli.out import json_data, say
from trainyard.cli.planning import plan_or_exit, stack_arguments


@click.command()
@stack_arguments
@click.option("--launch", metavar="JOB/RUN/NODE", help="Print only this node's launch document, as JSON.")
def plan(stack: str, stacks: Path, form: str, launch: str | None) -> None:
    """Show what follows from STACK_OR_FILE: access, network, storage, jobs, and what each node of a run gets.

    Secrets are never shown. Exits with 1 when the file has errors, as `trainyard check` would.
    """
    made = plan_or_exit(stack, stacks, form)
    if launch is not None:
        try:
            node = show.find_node(made, launch)
        except show.UnknownNameError as wrong:
            raise click.UsageError(f"{wrong} in {made.stack}: {suggestion(wrong.name, wrong.choices)}") from None
        json_data(show.json_text(node.launch))
    elif form == "json":
        json_data(show.json_text(made))
    else:
        say(show.plan_text(made))
