# SPDX-License-Identifier: Apache-2.0
"""What a registry already has of an image, and why a push failed: the same on every platform, in each one's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from components.platform.image_errors import ImageError


@dataclass(frozen=True)
class RegisteredImage:
    """What the registry already has of an image."""

    repository: bool
    immutable: bool = False
    digest: str = ""


@dataclass(frozen=True)
class PushFailure:
    """One kind of failed push: how the tool's last lines show it, its cause, and what to do. `{…}` are filled in."""

    pattern: str
    cause: str
    remedy: str


IMMUTABLE = PushFailure(
    r"immutable|cannot be overwritten|tag .*already exists",
    "the repository is immutable and has {tag} already",
    "Give the image a new tag in the stack file, then build and push that",
)
NO_REPOSITORY = PushFailure(
    r"name unknown|name_unknown|repository .*(?:not found|does not exist)|\b404\b",
    "the repository {repository} does not exist",
    "Make it first: {make}",
)
NOT_BUILT = PushFailure(
    r"no such image|not found in local storage|image not known|does not exist locally|unable to find image|"
    r"tag does not exist|no such file or directory|locating image",
    "{address} was not built on this machine",
    "Build it first: trainyard image build {stack}",
)
UNREACHABLE = PushFailure(
    r"no such host|connection refused|timed? ?out|timeout|unreachable|name resolution|tls|certificate",
    "{host} cannot be reached",
    "Check the network, a proxy, and that the stack's region is the right one",
)


def explain(output: str, failures: Iterable[PushFailure], facts: Mapping[str, str]) -> ImageError:
    """Why a push failed, from the last lines of the tool. The first row that fits counts."""
    last = output.casefold()
    for failure in failures:
        if re.search(failure.pattern, last):
            return ImageError(f"{failure.cause}\n{failure.remedy}".format(**facts))
    return ImageError("the push failed\nThe last lines above say why; the next try continues with what was pushed")


def judge(name: str, tag: str, registered: RegisteredImage, overwrite: bool, make: str) -> None:
    """Raises where a push would do harm or cannot work. `name`: of the repository. `make`: words that make it."""
    if not registered.repository:
        raise ImageError(f"the repository {name} does not exist yet\nMake it first: {make}")
    if registered.digest and registered.immutable:
        raise ImageError(
            f"{name} is immutable and has {tag} already ({registered.digest})\n"
            "Give the image a new tag in the stack file, then build and push that"
        )
    if registered.digest and not overwrite:
        raise ImageError(
            f"{name} has {tag} already ({registered.digest}): later runs would get another image\n"
            "Give the image a new tag in the stack file, or add --overwrite"
        )
