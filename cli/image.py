# SPDX-License-Identifier: Apache-2.0
"""`trainyard image build|push`: the images that a stack's jobs name, with docker, podman or buildah."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from cli.out import say, say_aside
from cli.planning import planned
from cli.problems import TellingGroup
from cli.running import running_cloud
from components.plan.model import Plan
from images import login as image_login
from images import tools as image_tools
from images.errors import ImageError
from images.login import Endpoint
from images.oci import registry as image_registry
from images.oci.addresses import UNKNOWN_NAMESPACE, namespace_of, needs_namespace, wanted
from images.oci.shapes import has_gpu, is_arm
from images.oci.token import TOKEN_USER, token
from images.recipes import PLATFORM, Additions, Recipe, make_context, recipe
from images.tools import Build, Tool
from images.wanted import Wanted
from provider.oci.session import Session
from schemas.names import suggestion

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group("image", cls=TellingGroup)
def image() -> None:
    """The images of a stack's jobs: built from launcher/images, pushed to the stack's registry."""


def _about_a_stack(command: Callable[..., None]) -> Callable[..., None]:
    """What both commands ask for."""
    decorated = command
    for add in (
        click.option("--local", is_flag=True, help="The local cloud that runs here."),
        click.option("--dry-run", is_flag=True, help="Print the words, run nothing."),
        click.option("--registry", default="", metavar="ADDRESS", help="What ${registry} stands for."),
        click.option("--namespace", default="", help="The tenancy's namespace; by default OCI is asked."),
        click.option("--tool", type=click.Choice(image_tools.NAMES), help="By default the first of these that works."),
        click.option("--job", help="Only the image of this job."),
        click.option("--stacks", type=click.Path(path_type=Path), default=Path("stacks"), help="Their folder."),
        click.argument("stack", metavar="STACK_OR_FILE"),
    ):  # fmt: skip
        decorated = add(decorated)
    return decorated


@image.command()
@_about_a_stack
@click.option("--gpu/--no-gpu", default=None, help="By default as the job's shape has it.")
@click.option("--base", help="Another base image, by tag or digest; launcher/images/images.toml has the usual ones.")
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="Another argument of the Dockerfile.")
@click.option("--requirements", type=_FILE, help="Python packages that the team's code needs beside the framework.")
@click.option("--code", type=_FOLDER, help="Code for the image itself, for jobs without `code` in the stack file.")
@click.option("--pip-config", type=_FILE, help="pip.conf for a package index of your own; it stays out of the image.")
def build(
    stack: str,
    stacks: Path,
    job: str | None,
    tool: str | None,
    namespace: str,
    registry: str,
    dry_run: bool,
    local: bool,
    gpu: bool | None,
    base: str | None,
    arguments: tuple[str, ...],
    requirements: Path | None,
    code: Path | None,
    pip_config: Path | None,
) -> None:
    """Build the images that the jobs of STACK_OR_FILE name."""
    plan = planned(stack, stacks, "text")
    session = Session.of({"region": plan.region}, _environment(local))
    images = _images(plan, session, namespace, registry, job, dry_run)
    additions = Additions(requirements, code)
    given = {**_pairs(arguments), **({"BASE": base} if base else {})}
    recipes = {one.address: _recipe(one, gpu, given, additions) for one in images}
    if not images:
        return
    chosen = image_tools.find(tool, dry_run, say_aside)
    for one in images:
        _build(chosen, one, recipes[one.address], given, additions, pip_config, dry_run)
    if not dry_run:
        say(f"Push with: trainyard image push {stack}{' --local' if local else ''}")


@image.command()
@_about_a_stack
@click.option("--overwrite", is_flag=True, help="Put the image in the place of one that has its tag.")
@click.option(
    "--sign-in/--no-sign-in",
    default=True,
    show_default=True,
    help="With the API key, for this push; else as logged in.",
)
def push(
    stack: str,
    stacks: Path,
    job: str | None,
    tool: str | None,
    namespace: str,
    registry: str,
    dry_run: bool,
    local: bool,
    overwrite: bool,
    sign_in: bool,
) -> None:
    """Push the images that the jobs of STACK_OR_FILE name, once they are built, and tell their digests."""
    plan = planned(stack, stacks, "text")
    environment = _environment(local)
    session = Session.of({"region": plan.region}, environment)
    images = _images(plan, session, namespace, registry, job, dry_run)
    if not images:
        return
    chosen = image_tools.find(tool, dry_run, say_aside)
    for one in images:
        if not dry_run:
            _judge(plan, session, one, overwrite)
        place = image_login.endpoint(one.host, environment)
        _push(chosen, plan, one, place, session if sign_in else None, dry_run)


def _environment(local: bool) -> Mapping[str, str]:
    """Which cloud is meant: the one the variables name, or the local one."""
    return {**os.environ, **running_cloud(None).env} if local else os.environ


def _images(
    plan: Plan, session: Session, namespace: str, registry: str, job: str | None, dry_run: bool
) -> list[Wanted]:
    if not namespace and needs_namespace(plan, registry):
        namespace = UNKNOWN_NAMESPACE if dry_run else image_registry.namespace(session)
    images, remarks = wanted(plan, namespace, registry, job)
    for remark in remarks:
        say(remark)
    return images


def _recipe(one: Wanted, gpu: bool | None, given: Mapping[str, str], additions: Additions) -> Recipe:
    """What an image is made of; jobs that share one have to agree."""
    recipes: dict[str, tuple[str, Recipe]] = {}
    for job in one.jobs:
        if is_arm(job.shape.name) and "REQUIREMENTS" not in given:
            raise ImageError(
                f"{job.name}: {job.shape.name} is an Arm shape, and the images' locks hold packages for x86-64\n"
                "Give a lock of your own: --arg REQUIREMENTS=launcher/images/…"
            )
        if job.code is None and additions.code is None:
            say(f"{job.name}: has no `code`, so its script must be in the image: --code FOLDER puts it there")
        found = recipe(job.framework, job.strategy, has_gpu(job.shape.name) if gpu is None else gpu)
        recipes.setdefault(found.title, (job.name, found))
    if len(recipes) > 1:
        jobs = " and ".join(f"{name} ({title})" for title, (name, _) in recipes.items())
        raise ImageError(f"{one.address} cannot serve both {jobs}\nGive the jobs images of different tags")
    chosen = next(iter(recipes.values()))[1]
    for name in given:
        if name.upper() not in chosen.declared:
            raise ImageError(f"{chosen.dockerfile} has no argument {name}\n{suggestion(name, chosen.declared)}")
    return chosen


def _build(
    tool: Tool,
    one: Wanted,
    chosen: Recipe,
    given: Mapping[str, str],
    additions: Additions,
    pip_config: Path | None,
    dry_run: bool,
) -> None:
    say(f"{one.address}: {chosen.title}, for {', '.join(job.name for job in one.jobs)}")
    labels = {"VERSION": one.tag, "REVISION": _revision()}
    arguments = {**chosen.arguments, **additions.arguments, **labels, **given}

    def words(context: Path) -> list[str]:
        wish = Build(context, chosen.dockerfile, one.address, PLATFORM, arguments, pip_config)
        return image_tools.build_words(tool, wish)

    if dry_run:
        say(f"  {shlex.join(words(Path('CONTEXT')))}")
        return
    with TemporaryDirectory(prefix="trainyard-image-") as folder:
        make_context(Path(folder), additions)
        code, _ = image_tools.run(tool, words(Path(folder)), say)
    if code:
        raise ImageError(
            f"{tool.name} did not build {one.address}: it ended with {code}\n"
            "Its last lines above say why; --base takes another base image, --pip-config another package index"
        )
    say(f"Built {one.address}.")


def _judge(plan: Plan, session: Session, one: Wanted, overwrite: bool) -> None:
    try:
        found = image_registry.standing(session, plan, one)
    except ImageError as error:
        why = str(error).partition("\n")[0]
        say(f"Not asked whether {one.tag} is there already: {why}", err=True)
        return
    if found is not None:
        image_registry.judge(plan, one, found, overwrite)


def _push(tool: Tool, plan: Plan, one: Wanted, place: Endpoint, session: Session | None, dry_run: bool) -> None:
    there = place.address(one.address)
    login = image_tools.login_words(tool, place.host, f"{namespace_of(one)}/<user>")
    if dry_run:
        say(f"{one.address}, for {', '.join(job.name for job in one.jobs)}")
        for words in image_tools.push_words(tool, one.address, there, place.plain_http):
            say(f"  {shlex.join(words)}")
        say(f"  without an API key, first, with an auth token on standard input: {login}")
        return
    with TemporaryDirectory(prefix="trainyard-image-") as folder:
        known = _signed_in(tool, Path(folder), place, session) if session else {}
        digest_file = Path(folder, "digest")
        for words in image_tools.push_words(tool, one.address, there, place.plain_http, digest_file):
            code, said = image_tools.run(tool, words, say, known)
            if code:
                raise image_registry.failure(said, plan, one, login)
        digest = image_tools.pushed_digest(tool, there, digest_file)
    say(f"Pushed {one.address}" + (f"\n  {digest}" if digest else ""))


def _signed_in(tool: Tool, folder: Path, place: Endpoint, session: Session) -> dict[str, str]:
    """By a token of the API key; where there is none, the tool's own login has to do."""
    try:
        return image_login.signed_in(tool, folder, place, TOKEN_USER, token(session, place))
    except ImageError as error:
        why = str(error).partition("\n")[0]
        say(f"Not signed in by API key ({why}): {tool.name} uses its own login.", err=True)
        return {}


def _pairs(arguments: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--arg {text}: write it as NAME=VALUE, as in --arg TOOLS=docker.io/library/gcc:12")
        pairs[name] = value
    return pairs


def _revision() -> str:
    """The commit of the launcher that goes into the image, where git can tell."""
    try:
        asked = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return asked.stdout.strip() if asked.returncode == 0 else "unknown"
