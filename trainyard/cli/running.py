# SPDX-License-Identifier: Apache-2.0
"""The options that choose a local cloud."""

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
CHECKOUT = Path(__file__).resolve().parents[2] / ".trainyard" / "cloud"
_HOME_HELP = (
    "The local cloud's folder; by default $TRAINYARD_HOME/cloud, else .trainyard/cloud here or in the checkout."
)


def home_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--home", type=click.Path(path_type=Path, file_okay=False), help=_HOME_HELP)(function)


def isolation_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--isolation", type=click.Choice(CHOICES), default=REQUIRED, envvar=VARIABLE, show_default=True,
        help="If this machine cannot isolate runs: let them fail, or run them without security rules.",
    )(function)  # fmt: skip


def cloud_home(home: Path | None) -> Path:
    from localcloud.control import default_home

    return (home or default_home()).resolve()


def known_home(home: Path | None) -> Path:
    """The folder of a cloud that should exist: the one here if there is one, else this checkout's."""
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
