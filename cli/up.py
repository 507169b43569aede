# SPDX-License-Identifier: Apache-2.0
"""`trainyard up|preview STACK --local`: runs plain Pulumi against the local cloud."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from cli.out import say, say_aside
from cli.planning import plan_or_exit, require_local_cloud
from cli.problems import INTERRUPTED
from cli.running import isolation_option
from components.plan.model import Plan
from components.refusal import moved
from engine.progress import Progress
from launcher.escaping import terminal
from localcloud import admin, control
from localcloud.isolation import REQUIRED, WHERE_POSSIBLE
from localstacks import renames
from localstacks.environments import make_packages, why_untrained
from localstacks.file import LocalFile
from localstacks.place import JUDGED, PROJECT, QUIET, Place
from localstacks.platform import LocalPlatform, local_platform_of
from localstacks.results import lost_lines, own_lines, reporting_nodes
from provider.runs.model import TERMINAL
from runstatus.outputs import RunReport, runs_now
from runstatus.platform import Question
from runstatus.seen import WantedRuns
from schemas.findings import dotted
from schemas.source import read

# Enough to see that it trained and how it ended.
LAST_LINES = 4


def local_command(help_text: str, *more: Callable[..., Any]) -> Callable[[Callable[..., None]], click.Command]:
    """The arguments that these commands share, and their message on Ctrl-C."""

    def declare(body: Callable[..., None]) -> click.Command:
        @click.argument("stack", default="local")
        @click.option("--local", is_flag=True, help="Use the local cloud. Without it, use `pulumi` itself.")
        @click.option(
            "--stacks", type=click.Path(path_type=Path), help="The folder of the stack files [default: stacks/]."
        )
        @isolation_option
        @click.argument("pulumi_arguments", nargs=-1, type=click.UNPROCESSED)
        def command(
            stack: str, local: bool, stacks: Path | None, isolation: str, pulumi_arguments: Sequence[str],
            **options: bool,
        ) -> None:  # fmt: skip
            if not local:
                raise click.UsageError(
                    f"add --local to use the local cloud; with an account, run: pulumi {body.__name__} -s {stack}"
                )
            place = Place(stack, (stacks or PROJECT / "stacks").resolve(), say_aside, isolation=isolation)
            try:
                body(place, list(pulumi_arguments), **options)
            except KeyboardInterrupt:
                flags = [f"--{name.replace('_', '-')}" for name, given in options.items() if given]
                flags += [] if isolation == REQUIRED else ["--isolation", isolation]
                again = place.command(body.__name__, "", *flags, *pulumi_arguments)
                say(f"\nInterrupted. To continue: {again}", err=True)
                sys.exit(INTERRUPTED)

        for option in more:
            command = option(command)
        command.__doc__ = help_text
        return click.command(context_settings={"ignore_unknown_options": True})(command)

    return declare


@local_command("Bring a stack up on the local cloud. Further arguments go to `pulumi up`.")
def up(place: Place, arguments: list[str]) -> None:
    _bring_up(place, arguments)


def _bring_up(place: Place, arguments: list[str]) -> None:
    plan = _plan(place)
    cloud = place.start_cloud()
    _must_isolate(place, plan, cloud)
    place.claim()
    make_packages(plan, place.file.parent, Progress())
    borrowed = _bring_up_used(place, plan)
    _tell(place.select(plan, cloud))
    _tell_of_renames(place, plan)
    local_platform_of(plan.platform).ready_images(cloud, plan, borrowed)
    if code := place.pulumi("up", *QUIET, *_judged(arguments), *arguments):
        sys.exit(code)
    _account(place, plan, cloud)


def _must_isolate(place: Place, plan: Plan, cloud: control.Cloud) -> None:
    """Without isolation, and without consent to that, `up` ends here, so that not each run has to fail."""
    if not any(job.runs for job in plan.jobs.values()) or admin.allows_missing_isolation(cloud):
        return
    if reason := admin.why_not_enforced(cloud):
        already = (
            "The cloud runs already, so stop it first: trainyard cloud stop\n" if place.isolation != REQUIRED else ""
        )
        raise click.ClickException(
            f"This machine cannot enforce the plan's security rules: {reason}.\n{already}"
            f"To run code that you trust without them: {place.command('up', '', '--isolation', WHERE_POSSIBLE)}"
        )


def _bring_up_used(place: Place, plan: Plan) -> str:
    """Bring up the stack whose outputs this one takes. Returns its registry's address if this stack uses it."""
    used = _used(plan)
    if not used:
        return ""
    if not place.is_up(used):
        say(f"{place.stack} takes {', '.join(plan.taken)} from {used}: bringing up {used} first.")
        _bring_up(Place(used, place.file.parent, say_aside), [])
    return str(place.outputs(used).get("imagePushAddress", "")) if "registry" in plan.taken else ""


@local_command("Show what `up` would change. Further arguments go to `pulumi preview`.")
def preview(place: Place, arguments: list[str]) -> None:
    plan = _plan(place)
    cloud = place.start_cloud()
    used = _used(plan)
    if used and not place.is_up(used):
        raise click.ClickException(
            f"{place.stack} takes {', '.join(plan.taken)} from {used}, which is not up.\n"
            f"Bring it up first: {place.command('up', used)}"
        )
    _tell(place.select(plan, cloud))
    _tell_of_renames(place, plan)
    sys.exit(place.pulumi("preview", "--non-interactive", *_judged(arguments), *arguments))


def _judged(arguments: list[str]) -> tuple[str, ...]:
    """The policy pack, except for targeted changes: a pack sees resources that are not targeted without properties."""
    return () if any(word.startswith("--target") for word in arguments) else JUDGED


def _tell(local: LocalFile) -> None:
    for remark in local.remarks:
        say(f"  here: {remark}")


def _tell_of_renames(place: Place, plan: Plan) -> None:
    own, _ = place.states()
    for text in renames.words(own.rows, plan, local_platform_of(plan.platform)):
        say(f"  renamed? {text}")


def _plan(place: Place) -> Plan:
    place.must_have_file()
    plan = plan_or_exit(str(place.file), place.file.parent, "text")
    require_local_cloud(plan)
    _require_same_platform(place, plan)
    return plan


def _require_same_platform(place: Place, plan: Plan) -> None:
    """The program refuses this too. Here nothing has been made for the other platform yet, and the copy of the file
    still tells `down` and `runs` where the stack is."""
    own, _ = place.states()
    if (there := place.platform_name) != plan.platform and any(own.made()):
        wrong = moved(plan.platform, there)
        line, _ = read(place.file).position(wrong.path)
        raise click.ClickException(
            f"{place.file}:{line}: {dotted(wrong.path)}: {wrong.message}\n{wrong.remedy}: {place.command('down')}"
        )


def _used(plan: Plan) -> str:
    return (plan.uses or "").rpartition("/")[2]


def _shown(place: Place, platform: LocalPlatform, cloud: control.Cloud, outputs: Mapping[str, Any]) -> Iterator[str]:
    """Where things are, and the machines that stay up."""
    for key, title in platform.shown_outputs:
        if key in outputs:
            yield f"  {title:8} {outputs[key]}"
    for machine in platform.machines(cloud, list(place.states()[0].made()), say_aside):
        yield f"  machine  {machine}"


def _account(place: Place, plan: Plan, cloud: control.Cloud) -> None:
    """Say what there is now, and where to look."""
    platform, outputs = local_platform_of(plan.platform), place.outputs()
    say(f"\nThe stack `{place.stack}` is up on the local cloud at {cloud.endpoint}.")
    if unenforced := admin.why_not_enforced(cloud):
        say(f"  rules    not enforced between its nodes: {unenforced}")
    for line in _shown(place, platform, cloud, outputs):
        say(terminal(line))
    runs = _runs_now(place, cloud, outputs)
    for job, run, report in runs:
        say(f"  run      {job}/{run}: {report['state']}")
        if why_untrained(plan.jobs[job], place.file.parent):
            continue
        for node in reporting_nodes(plan.jobs[job].runs[run], report["nodes"]):
            printed = platform.read_last_lines(cloud, node["id"], say_aside)
            for line in (*own_lines(printed)[-LAST_LINES:], *lost_lines(printed)):
                say(terminal(f"             {line}"))
        for line in platform.list_results(cloud, outputs, plan.jobs[job].runs[run], report["nodes"], say_aside):
            say(terminal(f"  left     {line}"))
    if any(report["state"] not in TERMINAL for _, _, report in runs):
        say(f"  watch    .venv/bin/{place.command('runs watch')}")
    say(f"  console  {cloud.endpoint}/console")
    say(f'  look     eval "$(.venv/bin/trainyard cloud env)" and use {platform.client}; .venv/bin/trainyard cloud log')


def _runs_now(place: Place, cloud: control.Cloud, outputs: Mapping[str, Any]) -> list[tuple[str, str, RunReport]]:
    config, bucket = read(place.local_file()).data["config"], partial(str, outputs.get("bucket", ""))
    wanted = WantedRuns(place.stack)
    return runs_now(outputs, Question(config, cloud, None, wanted, say_aside, None, bucket, place.file.parent))
