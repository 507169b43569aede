# SPDX-License-Identifier: Apache-2.0
"""`trainyard check`: all findings of all files at once; no cloud, no engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from schemas.across_stacks import check_together, find_neighbours
from schemas.judge import judge_file
from trainyard.cli.planning import find_stack_file, stacks_option
from trainyard.cli.render import RENDERERS, all_findings, show_findings

_DASH = "-"
_STANDARD_INPUT = Path("/dev/stdin")


@click.command()
@click.argument("named", nargs=-1, metavar="[STACK_OR_FILE]...")
@stacks_option
@click.option("--format", "form", type=click.Choice(list(RENDERERS)), default="text", help="The form of the findings.")
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
def check(named: tuple[str, ...], stacks: Path, form: str, strict: bool) -> None:
    """Check stacks by their names or files (`-` is standard input), or all Pulumi.*.yaml of the stacks folder.

    Other stack files of the same folder are read to compare names and networks, but get no findings of their own.
    Exits with 0 when nothing is wrong, 1 when something is, 2 when a file cannot be read.
    """
    # A file that is there is meant by its path, else a stack by its name.
    chosen = tuple(
        Path(name)
        if name == _DASH or (os.path.exists(name) and not os.path.isdir(name))
        else find_stack_file(name, stacks)
        for name in named
    ) or tuple(sorted(stacks.glob("Pulumi.*.yaml")))
    if not chosen:
        raise click.UsageError(f"no Pulumi.*.yaml in {stacks}/: name files, or another folder with --stacks")
    judged = [judge_file(_STANDARD_INPUT if str(file) == _DASH else file, str(file)) for file in chosen]
    judged = check_together(judged, find_neighbours(chosen, judged))
    show_findings(judged, form)
    findings = all_findings(judged)
    if any(finding.code == "TY001" for finding in findings):
        sys.exit(2)
    failing = {"error", "warning"} if strict else {"error"}
    sys.exit(1 if any(finding.severity in failing for finding in findings) else 0)
