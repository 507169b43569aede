# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share. Those that choose a local cloud are in trainyard/cli/running.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)

stacks_option = click.option(
    "--stacks", type=click.Path(path_type=Path), default=Path("stacks"), help="The folder of the stack files."
)
profile_option = click.option("--profile", metavar="NAME", help="The profile of your credentials.")


def place_option(what: str) -> Callable[[FC], FC]:
    """`what` says what is at the place, such as `the runs are`. `--compartment` is the older name of the option."""
    return click.option(
        "--place",
        "--compartment",
        "place",
        metavar="PLACE",
        help=f"Where {what}, if not where the stack's file says: the OCID of a compartment (OCI), the name of a bucket "
        "(AWS), or the address of a portal (OpenPAI).",
    )
