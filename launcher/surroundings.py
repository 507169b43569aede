# SPDX-License-Identifier: Apache-2.0
"""What the node's programs come from: an image, or an environment of the machine that stands in for one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from launcher.document import Launch
from launcher.errors import LaunchError

# Set where no image is: the name of the environment in its place.
VARIABLE = "TRAINYARD_ENVIRONMENT"
# Where an image keeps the packages that it was built with, beside this launcher.
_PACKAGES = Path(__file__).resolve().parents[1] / "images" / "team.txt"


def missing_program(program: str, environment: Mapping[str, str], correct: str = "the command") -> str:
    """Why a program cannot be started, and what to do. `correct` is what may be wrong besides."""
    name = environment.get(VARIABLE)
    if name:
        remedy = f"correct {correct}, or name the package that brings it in the job's `requirements:`"
        return f"`{program}` is not in this machine's environment `{name}`: {remedy}"
    return f"`{program}` is not in this image: correct {correct}, or the image"


def require_packages(launch: Launch, environment: Mapping[str, str]) -> None:
    """LaunchError if the image was built with other packages than the job asks for now.

    The tag of an image stays the same when a requirements file changes, so nobody else would notice. An image of
    another origin keeps no list: then the team sees to its packages.
    """
    if not launch.packages or VARIABLE in environment or not _PACKAGES.is_file():
        return
    if hashlib.sha256(_PACKAGES.read_bytes()).hexdigest()[: len(launch.packages)] != launch.packages:
        raise LaunchError(
            f"the job's `requirements:` have changed since this image was built: give the job's `image` a new tag, "
            f"then run `trainyard image build {launch.stack}` and `trainyard image push {launch.stack}`"
        )
