# SPDX-License-Identifier: Apache-2.0
"""`trainyard convert`: makes a stack file of what another system runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from catalog.platforms import default_platform, platform_spellings, platform_word
from catalog.secret_looks import without_tokens
from components.platform.new_stacks import Caller
from trainyard.bring.assemble import assemble_stack, render_stack
from trainyard.bring.notes import BringError, Note
from trainyard.bring.readers import read_brought_job
from trainyard.bring.source_text import read_source_text
from trainyard.cli.out import print_data, say_aside


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--stack", default="", metavar="TEAM-ENVIRONMENT", help="The name of the stack; by default that of this folder."
)
@click.option(
    "--platform",
    type=click.Choice(list(platform_spellings())),
    help=f"Where the stack is to run. Default: {platform_word(default_platform())}; openpai for a job of OpenPAI.",
)
def convert(files: tuple[str, ...], stack: str, platform: str | None) -> None:
    """Make a stack file of FILE, on standard output.

    FILE is a batch script of Slurm, a distributed job of ADS, a job of OpenPAI, or a PyTorchJob, MPIJob, TFJob or
    TrainJob of Kubernetes. Several files are one job, if they need one another: a TrainJob and its runtime.

    Call it in the folder where the job is submitted. Notes say what is not brought, with line, reason and remedy: on
    standard error, and in the head of the file.

    Exits with 0 when everything is brought, 1 when something is left out, 2 when there is no stack.
    """
    try:
        sources = [read_source_text(Path(file), file) for file in files]
        chosen = platform_spellings()[platform] if platform else ""
        job, taker = read_brought_job(sources, chosen)
        place = chosen or job.platform or default_platform()
        config = assemble_stack(job, taker, place, stack or f"{Path.cwd().name}-dev", Caller(os.environ, Path.home()))
    except BringError as error:
        _say_notes([error.note])
        sys.exit(2)
    notes = sorted(taker.notes, key=lambda note: note.line or sys.maxsize)
    _say_notes(notes)
    severities = {note.severity for note in notes}
    if "error" in severities:
        sys.exit(2)
    print_data(without_tokens(render_stack(config, files, notes)).rstrip("\n"))
    sys.exit(1 if "warning" in severities else 0)


def _say_notes(notes: Sequence[Note]) -> None:
    for note in notes:
        say_aside(note.text())
