# SPDX-License-Identifier: Apache-2.0
"""`trainyard image build|push`: the images that a stack's jobs name, with docker, podman or buildah."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from components.plan.model import Plan
from components.platform.images import Additions, ImagePlatform, WantedImage, image_platform_of
from trainyard.cli.errors import ErrorReportingGroup
from trainyard.cli.out import say, say_aside
from trainyard.cli.planning import plan_or_exit, running_cloud, stacks_option
from trainyard.cli.waiting import show_waiting
from trainyard.images import image_tools
from trainyard.images.build_push import BuildOptions, Push, build_image, choose_recipe, registry_endpoint

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group("image", cls=ErrorReportingGroup)
def image() -> None:
    """Build the images of a stack's jobs from launcher/images, or push them to the stack's registry."""


def _about_a_stack(command: Callable[..., None]) -> Callable[..., None]:
    """The options of both commands."""
    decorated = command
    for add in (
        click.option("--local", is_flag=True, help="Use the local cloud that runs here."),
        click.option("--dry-run", is_flag=True, help="Print the commands, run nothing."),
        click.option("--registry", default="", metavar="ADDRESS", help="The address that ${registry} stands for."),
        click.option("--namespace", default="", help="The tenancy's namespace; by default OCI tells it."),
        click.option("--tool", type=click.Choice(image_tools.NAMES), help="The tool; by default the first that works."),
        click.option("--job", help="Only the image of this job."),
        stacks_option,
        click.argument("stack", metavar="STACK_OR_FILE"),
    ):  # fmt: skip
        decorated = add(decorated)
    return decorated


@image.command("build")
@_about_a_stack
@click.option("--gpu/--no-gpu", default=None, help="Build for a GPU or not; by default the job's shape decides.")
@click.option("--base", help="Another base image, by tag or digest; launcher/images/images.toml names the usual ones.")
@click.option("--arg", "arguments", multiple=True, metavar="NAME=VALUE", help="Set another argument of the Dockerfile.")
@click.option(
    "--requirements", type=_FILE, help="A list of Python packages that the team's code needs beside the framework."
)
@click.option("--code", type=_FOLDER, help="Copy this code into the image, for jobs without `code` in the stack file.")
@click.option("--pip-config", type=_FILE, help="A pip.conf for a package index of your own; it stays out of the image.")
def build_images_command(
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
    plan = plan_or_exit(stack, stacks, "text")
    platform = image_platform_of(plan, _variables_of_cloud(local))
    images = _find_images(plan, platform, namespace, registry, job, dry_run)
    pairs = {}
    for text in arguments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--arg {text}: write it as NAME=VALUE, as in --arg TOOLS=docker.io/library/gcc:12")
        pairs[name] = value
    given = {**pairs, **({"BASE": base} if base else {})}
    options = BuildOptions(gpu, given, Additions(requirements, code), pip_config, dry_run)
    recipes = {wanted.address: choose_recipe(wanted, options, platform, say) for wanted in images}
    if not images:
        return
    builder = image_tools.find_tool(tool, dry_run, say_aside)
    for wanted in images:
        build_image(builder, wanted, recipes[wanted.address], options, say)
    if not dry_run:
        say(f"Push with: trainyard image push {stack}{' --local' if local else ''}")


@image.command("push")
@_about_a_stack
@click.option("--overwrite", is_flag=True, help="Replace an image that has the same tag.")
@click.option(
    "--sign-in/--no-sign-in",
    default=True,
    show_default=True,
    help="Sign in for this push with the cloud's credentials; otherwise the tool's own login counts.",
)
def push_images_command(
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
    """Push the built images that the jobs of STACK_OR_FILE name, and print their digests."""
    plan = plan_or_exit(stack, stacks, "text")
    environment = _variables_of_cloud(local)
    platform = image_platform_of(plan, environment)
    images = _find_images(plan, platform, namespace, registry, job, dry_run)
    if not images:
        return
    pushing = Push(image_tools.find_tool(tool, dry_run, say_aside), plan, platform, sign_in, dry_run, say, say_aside)
    for built in images:
        if not dry_run:
            with show_waiting(f"asking the registry for {built.address}"):
                pushing.judge(built, overwrite)
        pushing.push(built, registry_endpoint(built.host, environment))


def _variables_of_cloud(local: bool) -> Mapping[str, str]:
    """The environment of the chosen cloud: this shell's variables, or the local cloud's too."""
    return {**os.environ, **running_cloud(None).env} if local else os.environ


def _find_images(
    plan: Plan, platform: ImagePlatform, namespace: str, registry: str, job: str | None, dry_run: bool
) -> list[WantedImage]:
    with show_waiting("looking up the registry of the images"):
        images, remarks = platform.wanted_images(plan, namespace, registry, job, dry_run)
    for remark in remarks:
        say(remark)
    return images
