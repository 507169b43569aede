# SPDX-License-Identifier: Apache-2.0
"""`trainyard access`: who may do what, in words, and what the deployer needs."""

from __future__ import annotations

from pathlib import Path

import click

from components.plan.platform import platform_of
from components.plan.show import json_text
from trainyard.cli.out import json_data, say
from trainyard.cli.planning import plan_or_exit, stack_arguments


@click.command()
@stack_arguments
@click.option("--deployers", metavar="GROUP", default="deployers", help="The group of the people who run `pulumi up`.")
def access(stack: str, stacks: Path, form: str, deployers: str) -> None:
    """Show who may do what in STACK_OR_FILE: in words, as policy statements, and the deployer's least policy.

    Statements are marked if no document names their permissions outright. Exits with 1 when the file has errors.
    """
    made = plan_or_exit(stack, stacks, form)
    try:
        report = platform_of(made.platform).access_report(made, deployers)
    except ValueError as wrong:
        raise click.UsageError(f"--deployers: {wrong}") from None
    if form == "json":
        json_data(json_text(report))
    else:
        say(report.text())
