# SPDX-License-Identifier: Apache-2.0
"""Builds an image: chooses the recipe, fills the build context, runs the tool."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from components.platform.calls import Tell
from components.platform.images import PLATFORM, Additions, ImageError, ImagePlatform, Recipe, WantedImage, make_context
from schemas.names import suggestion
from trainyard.images import tools
from trainyard.images.tools import Build, Tool


@dataclass(frozen=True)
class BuildOptions:
    """The options of a build. If `gpu` is None, each job's shape decides."""

    gpu: bool | None
    arguments: Mapping[str, str]
    additions: Additions
    pip_config: Path | None
    dry_run: bool


def choose_recipe(one: WantedImage, options: BuildOptions, platform: ImagePlatform, show: Tell) -> Recipe:
    """The recipe of an image. Jobs that share an image must agree on it."""
    recipes: dict[str, tuple[str, Recipe]] = {}
    for job in one.jobs:
        shape = job.shape.name
        if platform.is_arm(shape) and "REQUIREMENTS" not in options.arguments:
            raise ImageError(
                f"{job.name}: {shape} is an Arm shape, and the lock files of our images have packages for x86-64 only\n"
                "Give your own lock file: --arg REQUIREMENTS=launcher/images/…"
            )
        if job.code is None and options.additions.code is None:
            show(f"{job.name}: has no `code`, so its script must be in the image: --code FOLDER puts it there")
        fitting = platform.recipe(job, options.gpu)
        recipes.setdefault(fitting.title, (job.name, fitting))
    if len(recipes) > 1:
        jobs = " and ".join(f"{name} ({title})" for title, (name, _) in recipes.items())
        raise ImageError(f"{one.address} cannot serve both {jobs}\nGive the jobs images of different tags")
    chosen = next(iter(recipes.values()))[1]
    add_packages(one, options.additions)
    for name in options.arguments:
        if name.upper() not in chosen.declared:
            raise ImageError(f"{chosen.dockerfile} has no argument {name}\n{suggestion(name, chosen.declared)}")
    return chosen


def build(tool: Tool, one: WantedImage, chosen: Recipe, options: BuildOptions, show: Tell) -> None:
    """Build the image, or show the command that would build it."""
    show(f"{one.address}: {chosen.title}, for {', '.join(job.name for job in one.jobs)}")
    labels = {"VERSION": one.tag, "REVISION": _revision()}
    additions = add_packages(one, options.additions)
    arguments = {**chosen.arguments, **additions.arguments, **labels, **options.arguments}

    def words(context: Path) -> list[str]:
        inputs = Build(context, chosen.dockerfile, one.address, PLATFORM, arguments, options.pip_config)
        return tools.build_words(tool, inputs)

    if options.dry_run:
        show(f"  {shlex.join(words(Path('CONTEXT')))}")
        return
    with TemporaryDirectory(prefix="trainyard-image-") as folder:
        make_context(Path(folder), additions)
        code, _ = tools.run(tool, words(Path(folder)), show)
    if code:
        raise ImageError(
            f"{tool.name} did not build {one.address}: it ended with {code}\n"
            "Its last lines above say why. --base takes another base image, --pip-config another package index"
        )
    show(f"Built {one.address}.")


def add_packages(one: WantedImage, additions: Additions) -> Additions:
    """The additions, with the packages of the jobs' `requirements`. All jobs of the image must have the same ones."""
    asking = {job.packages.text: job for job in reversed(one.jobs) if job.packages}
    if len(asking) > 1:
        names = " and ".join(f"{job.name} ({job.packages.file})" for job in asking.values() if job.packages)
        raise ImageError(
            f"{one.address} cannot hold the packages of both {names}\nGive the jobs images of different tags"
        )
    for text, job in asking.items():
        if additions.requirements:
            raise ImageError(
                f"{job.name}: has `requirements` in the stack file, and --requirements names another file\n"
                "Keep one of them"
            )
        return replace(additions, packages=text)
    return additions


def _revision() -> str:
    """The commit of the launcher that goes into the image, where git can tell."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return described.stdout.strip() if described.returncode == 0 else "unknown"
