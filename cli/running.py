# SPDX-License-Identifier: Apache-2.0
"""Which local cloud a command is about."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localcloud.isolation import CHOICES, REQUIRED, VARIABLE

if TYPE_CHECKING:
    from localcloud.control import Cloud

# Where `trainyard up --local` keeps its cloud, wherever it is called from.
CHECKOUT = Path(__file__).resolve().parents[1] / ".trainyard" / "cloud"
_HOME_HELP = "Its folder; by default $TRAINYARD_HOME/cloud, else .trainyard/cloud here or in the checkout."


def home_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--home", type=click.Path(path_type=Path, file_okay=False), help=_HOME_HELP)(function)


def isolation_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--isolation", type=click.Choice(CHOICES), default=REQUIRED, envvar=VARIABLE, show_default=True,
        help="What runs do where this machine gives them no network of their own: fail, or run without rules.",
    )(function)  # fmt: skip


def cloud_home(home: Path | None) -> Path:
    from localcloud.control import default_home

    return (home or default_home()).resolve()


def known_home(home: Path | None) -> Path:
    """The folder of a cloud that is to be there: where one stands, else this checkout's."""
    here = cloud_home(home)
    if home or os.environ.get("TRAINYARD_HOME") or here.exists() or not CHECKOUT.exists():
        return here
    return CHECKOUT


def running_cloud(home: Path | None) -> Cloud:
    from localcloud.control import running

    cloud = running(known_home(home))
    if cloud is None:
        raise click.ClickException(
            f"No local cloud runs in {known_home(home)}.\nStart it with `trainyard cloud start`."
        )
    return cloud
