# SPDX-License-Identifier: Apache-2.0
"""Builds an image (recipe, build context, tool) and pushes it: signs the tool in for this push, shows the digest."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from components.plan.model import Plan
from components.platform.calls import Tell
from components.platform.images import (
    PLATFORM,
    Additions,
    Endpoint,
    ImageError,
    ImagePlatform,
    Recipe,
    WantedImage,
    make_context,
)
from schemas.name_suggestions import suggest_name
from trainyard.engine.isolated import GitError, git_output
from trainyard.images import image_tools
from trainyard.images.image_tools import Build, Tool

# The registry's address, if it differs from the host in the images' addresses.
ENDPOINT_VARIABLE = "TRAINYARD_REGISTRY"


def registry_endpoint(host: str, environment: Mapping[str, str]) -> Endpoint:
    """Where to reach the registry: at the host itself, unless the environment names another address."""
    address = environment.get(ENDPOINT_VARIABLE, "")
    if not address:
        return Endpoint(host)
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc or parts.path.strip("/"):
        raise ImageError(
            f"{ENDPOINT_VARIABLE} is not a valid address: `{address}`\nWrite it as https://HOST or http://HOST:PORT"
        )
    return Endpoint(parts.netloc, parts.scheme == "http", elsewhere=True)


def login_variables(tool: Tool, folder: Path, place: Endpoint, user: str, secret: str) -> dict[str, str]:
    """The variables that tell a tool where the token is: in a file that only its owner may read."""
    logins = {place.host: {"auth": base64.b64encode(f"{user}:{secret}".encode()).decode()}}
    if tool.auth_variable == "DOCKER_CONFIG":
        # Docker gets the daemon's address of the user's own configuration, and only our login.
        usual = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
        try:
            config = json.loads((usual / "config.json").read_text("utf-8"))
        except (OSError, ValueError):
            config = {}
        copied = {name: config[name] for name in ("currentContext", "proxies", "cliPluginsExtraDirs") if name in config}
        _write_private(folder / "config.json", {**copied, "auths": logins})
        for name in ("contexts", "cli-plugins", "buildx"):
            if (usual / name).is_dir():
                (folder / name).symlink_to(usual / name)
        return {tool.auth_variable: str(folder)}
    file = folder / "auth.json"
    _write_private(file, {"auths": logins})
    return {tool.auth_variable: str(file)}


def _write_private(file: Path, content: Mapping[str, Any]) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        json.dump(content, opened)


@dataclass(frozen=True)
class Push:
    """How images of a plan are pushed. `show` prints results, `tell` prints remarks."""

    tool: Tool
    plan: Plan
    platform: ImagePlatform
    sign_in: bool
    dry_run: bool
    show: Tell
    tell: Tell

    def judge(self, one: WantedImage, overwrite: bool) -> None:
        """Raises ImageError if this push would do harm or cannot work."""
        if why := self.platform.judge(self.plan, one, overwrite):
            self.tell(f"Could not check whether {one.tag} exists already: {why}")

    def push(self, one: WantedImage, place: Endpoint) -> None:
        """Pushes the image, or shows the commands that would."""
        there = place.address(one.address)
        login = image_tools.login_words(self.tool, place.host, self.platform.user_of(one))
        if self.dry_run:
            self.show(f"{one.address}, for {', '.join(job.name for job in one.jobs)}")
            for words in image_tools.push_words(self.tool, one.address, there, place.plain_http):
                self.show(f"  {shlex.join(words)}")
            self.show(f"  {self.platform.by_hand(login)}")
            return
        with TemporaryDirectory(prefix="trainyard-image-") as folder:
            login_environment = self._sign_in(Path(folder), place) if self.sign_in else {}
            digest_file = Path(folder, "digest")
            for words in image_tools.push_words(self.tool, one.address, there, place.plain_http, digest_file):
                code, output = image_tools.run_tool(self.tool, words, self.show, login_environment)
                if code:
                    raise self.platform.explain_failure(output, self.plan, one, login)
            digest = image_tools.pushed_digest(self.tool, there, digest_file)
        self.show(f"Pushed {one.address}" + (f"\n  {digest}" if digest else ""))

    def _sign_in(self, folder: Path, place: Endpoint) -> dict[str, str]:
        """Sign in for this push. Without credentials for it, the tool's own login is used."""
        try:
            user, secret = self.platform.login(place)
            return login_variables(self.tool, folder, place, user, secret)
        except ImageError as error:
            why = str(error).partition("\n")[0]
            self.tell(f"Not signed in ({why}): {self.tool.name} uses its own login.")
            return {}


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
    if chosen.lacks and "BASE" not in options.arguments:
        raise ImageError(chosen.lacks)
    add_packages(one, options.additions)
    for name in options.arguments:
        if name.upper() not in chosen.declared:
            raise ImageError(f"{chosen.dockerfile} has no argument {name}\n{suggest_name(name, chosen.declared)}")
    return chosen


def build_image(tool: Tool, one: WantedImage, chosen: Recipe, options: BuildOptions, show: Tell) -> None:
    """Build the image, or show the command that would build it."""
    show(f"{one.address}: {chosen.title}, for {', '.join(job.name for job in one.jobs)}")
    if chosen.remark and "BASE" not in options.arguments:
        show(f"  {chosen.remark}")
    try:
        # The commit of the launcher that goes into the image, where git can tell.
        revision = git_output(Path(__file__).parent, "describe", "--always", "--dirty", "--abbrev=12", timeout=10)
    except (OSError, GitError, subprocess.TimeoutExpired):
        revision = "unknown"
    labels = {"VERSION": one.tag, "REVISION": revision}
    additions = add_packages(one, options.additions)
    arguments = {**chosen.arguments, **additions.arguments, **labels, **options.arguments}

    def words(context: Path) -> list[str]:
        inputs = Build(context, chosen.dockerfile, one.address, PLATFORM, arguments, options.pip_config)
        return image_tools.build_words(tool, inputs)

    if options.dry_run:
        show(f"  {shlex.join(words(Path('CONTEXT')))}")
        return
    with TemporaryDirectory(prefix="trainyard-image-") as folder:
        make_context(Path(folder), additions)
        code, _ = image_tools.run_tool(tool, words(Path(folder)), show)
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
