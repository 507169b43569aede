# SPDX-License-Identifier: Apache-2.0
"""Which local cloud a command is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from localcloud.control import Cloud

_HOME_HELP = "Its folder; by default $TRAINYARD_HOME/cloud, else .trainyard/cloud."


def home_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--home", type=click.Path(path_type=Path, file_okay=False), help=_HOME_HELP)(function)


def cloud_home(home: Path | None) -> Path:
    from localcloud.control import default_home

    return (home or default_home()).resolve()


def running_cloud(home: Path | None) -> Cloud:
    from localcloud.control import running

    cloud = running(cloud_home(home))
    if cloud is None:
        raise click.ClickException(
            f"No local cloud runs in {cloud_home(home)}.\nStart it with `trainyard cloud start`."
        )
    return cloud
