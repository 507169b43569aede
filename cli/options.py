# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share. Those that choose a local cloud are in cli/running.py."""

from __future__ import annotations

from pathlib import Path

import click

stacks_option = click.option(
    "--stacks", type=click.Path(path_type=Path), default=Path("stacks"), help="The folder of the stack files."
)
profile_option = click.option("--profile", metavar="NAME", help="The profile of your credentials.")
