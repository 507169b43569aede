# SPDX-License-Identifier: Apache-2.0
"""`trainyard down STACK --local`: shows what will be removed, checks which stacks need it, takes the stack down."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import click

from catalog.platforms import platforms_with, require_capability
from components.platform.local import PROJECT_NAME, LocalPlatform, Row
from launcher.escaping import terminal_lines
from localcloud import control
from schemas.name_suggestions import count_noun
from trainyard.cli.out import ask_yes_or_no, say, say_aside, say_in_colour
from trainyard.cli.up import local_command
from trainyard.local import stack_states
from trainyard.local.local_stack import QUIET, LocalStack
from trainyard.local.places import hint_of_other_clouds, own_command
from trainyard.local.stack_states import dependent_stacks

DELETE_DATA = click.option(
    "--delete-data",
    is_flag=True,
    help="Also delete what is kept: protected buckets, repositories, and stand-ins with data.",
)
YES = click.option("--yes", "-y", is_flag=True, help="End live runs without asking.")
_TARGET = "--target"
_NOTHING_LEFT = "Nothing is left; the local cloud is stopped."
# Pulumi's advice after `destroy`. It is hidden: `down` removes the stack itself and lists what is kept.
_ADVICE = re.compile(
    r"The resources in the stack have been deleted, but|If you want to remove the stack completely, run"
    r"|All unprotected resources were destroyed\.|There were no unprotected resources to destroy\."
)


@local_command("Take a stack down. After the last stack, stop the local cloud.", DELETE_DATA, YES)
def down(place: LocalStack, arguments: list[str], delete_data: bool, yes: bool) -> None:
    elsewhere = "" if place.stack in place.stacks() else hint_of_other_clouds(place.stack, place.home)
    if elsewhere and not os.environ.get("TRAINYARD_HOME"):
        raise click.ClickException(f"The stack `{place.stack}` is not up here, in {place.home}.{elsewhere}")
    cloud = place.start_cloud()
    if place.stack in place.stacks():
        place.claim()
        _take_down(place, cloud, arguments, delete_data, yes)
    else:
        say(f"The stack `{place.stack}` is not up.{elsewhere}")
    left = place.stacks_up()
    if others := [name for name in left if name != place.stack]:
        say(f"Still up: {', '.join(others)}.")
    with place.leave_cloud() as unused:
        if unused:
            place.remove_stand_ins(cloud, delete_data)
            # What users, or stacks of another backend, have left in the cloud.
            data = [
                line
                for name in platforms_with(LocalPlatform)
                for line in require_capability(name, LocalPlatform).list_data(cloud, say_aside)
            ]
            control.stop_cloud(place.home / "cloud")
            remedy = shlex.join(["cloud", "reset", "--home", str(place.home / "cloud")])
            lines = [
                "No stack is up any more, and the local cloud is stopped. It still holds data that no stack here made:",
                *(f"  {line}" for line in data),
                f"To remove it with all data: {own_command()} {remedy}",
            ]
            say(terminal_lines("\n".join(lines)) if data else _NOTHING_LEFT)
        elif not left:
            say("No stack is up any more. Another command uses the local cloud, so it keeps running.")


def _take_down(place: LocalStack, cloud: control.Cloud, arguments: list[str], delete_data: bool, yes: bool) -> None:
    platform, (own, every) = place.platform, place.states()
    pairs = pairwise([*arguments, ""])
    targets = {word.partition("=")[2] or after for word, after in pairs if word.partition("=")[0] == _TARGET}
    resources = [resource for resource in own.made() if not targets or resource["urn"] in targets]
    protected = [resource for resource in resources if resource.get("protect") and not delete_data]
    # Retained resources that are not protected leave the state and stay in the cloud.
    let_go = [
        resource
        for resource in resources
        if resource.get("retainOnDelete") and resource not in protected and not delete_data
    ]
    going = [resource for resource in resources if resource not in protected and resource not in let_go]
    if dependents := dependent_stacks(own, every, going, platform):
        lines = [f"  {dependent.state.stack:12} {dependent}" for dependent in dependents]
        remedies = [
            place.command("down", dependent.state.stack)
            if dependent.state.project == PROJECT_NAME
            else f"pulumi destroy --stack organization/{dependent.state.project}/{dependent.state.stack}"
            for dependent in dependents
        ]
        head = f"Nothing was removed: other stacks need what {place.stack} made."
        lines = [head, *lines, "Take them down first:", *(f"  {remedy}" for remedy in remedies)]
        raise click.ClickException("\n".join(lines))
    staying = [resource for resource in resources if resource not in going]
    removal = platform.describe_removal(cloud, going, staying, say_aside)
    if lines := [*(f"ends     {run}" for run in removal.live), *removal.lines]:
        say("\n".join([f"With the stack {place.stack}:", *(f"  {line}" for line in lines)]))
    if removal.live and not yes and not ask_yes_or_no("End the runs that are still training?"):
        raise click.ClickException("Nothing was removed.")
    if delete_data:
        stack_states.end_protection(place)
    _destroy_resources(place, platform, cloud, going, [*(["--exclude-protected"] if protected else []), *arguments])
    left = list(place.states()[0].made())
    if let_go:
        names = ", ".join(dict.fromkeys(map(platform.describe_resource, let_go)))
        say(f"\nNo longer part of this stack, but still in the cloud: {names}.")
    if not left:
        place.forget()
    elif protected:
        say(f"\nKept, as the stack file says: {', '.join(map(platform.describe_resource, protected))}.")
        say(f"To remove them and what is in them: {place.command('down', '', '--delete-data')}")
    else:
        rest = count_noun(len(left), "resource")
        say(f"\n{rest} of {place.stack} are still there, because `{_TARGET}` did not name them.")


def _destroy_resources(
    place: LocalStack, platform: LocalPlatform, cloud: control.Cloud, going: Sequence[Row], arguments: list[str]
) -> None:
    # The user may have taken long to answer. Another command may have started on the stack since.
    place.claim()
    platform.end_other_runs(cloud, going, say_aside)
    platform.empty_buckets(cloud, going, say_aside)
    # As Pulumi would choose on our terminal.
    chosen = any(os.environ.get(name) for name in ("NO_COLOR", "PULUMI_OPTION_COLOR"))
    colour = ("--color", "always") if sys.stdout.isatty() and not chosen else ()
    destroy = partial(place.pulumi, "destroy", *QUIET, *colour, *arguments, show=_show_unless_advice)
    code = destroy()
    # Somebody else may have written to the bucket again.
    if code and platform.empty_buckets(cloud, going, say_aside):
        code = destroy()
    if code:
        sys.exit(code)


def _show_unless_advice(line: str) -> None:
    if not _ADVICE.match(line):
        say_in_colour(line, colour=sys.stdout.isatty())
