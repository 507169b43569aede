# SPDX-License-Identifier: Apache-2.0
"""`trainyard cloud`: start, watch and stop the local cloud."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import click

from localcloud.files import WHERE_POSSIBLE
from trainyard.cli.errors import ErrorReportingGroup
from trainyard.cli.out import ask_yes_or_no, print_data, print_json, say
from trainyard.cli.planning import home_option, isolation_option, require_isolation, running_cloud
from trainyard.local.places import cloud_home

_KINDS = (
    "latency", "status", "drop", "lost-answer", "no-capacity", "spot", "disk", "limit", "transition", "token",
    "access",
)  # fmt: skip


@click.group()
def faults() -> None:
    """Make the local cloud fail on purpose.

    \b
    latency      --seconds N        the answer takes N seconds longer
    status       --status N         the call is refused with 429, 500, 503 … before anything is done
    drop                            the connection ends before anything is done
    lost-answer                     the call is done, but its answer never comes
    no-capacity  --shape 'VM.GPU*'  OCI is out of host capacity
    spot         --shape 'g6e.*'    spot machines get the notice that AWS takes them back
    disk         --value 64         nodes that start on OCI or OpenPAI have a disk of 64 MiB
    limit        --limit vcn-count --value 1   a limit of the service is lower
    transition   --seconds N        resources take N seconds to be made or removed
    token        --seconds N        the tokens of runs and notebooks end after N seconds
    access       --seconds N        policies and dynamic groups take effect N seconds late
    """


@faults.command("add")
@home_option
@click.argument("kind", type=click.Choice(_KINDS))
@click.option("--operations", help="Only operations of this pattern, such as 'Create*' or GetVcn.")
@click.option("--rate", type=float, help="The share of calls that fail, from 0 to 1; by default all.")
@click.option("--seed", type=int, help="The same seed makes the same calls fail.")
@click.option("--times", type=int, help="Fail at most this many times.")
@click.option("--seconds", type=float)
@click.option("--status", type=int)
@click.option("--code", help="Answer with this error code, not the usual one.")
@click.option("--shape", help="A pattern of shape names.")
@click.option("--limit", help="A limit's name, as `oci limits value list` shows it.")
@click.option("--value", type=int)
def add_fault_command(home: Path | None, kind: str, **settings: Any) -> None:
    """Add a fault."""
    from localcloud.admin import add_fault

    given = {name: value for name, value in settings.items() if value is not None}
    added = add_fault(running_cloud(home), kind, **given)
    say(f"Added: {_fault_line(added)}\nEnd it with: trainyard cloud faults clear {added['id']}")


@faults.command("list")
@home_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_faults_command(home: Path | None, as_json: bool) -> None:
    """Show the faults, and how often each has struck."""
    from localcloud.admin import list_faults

    faults_now = list_faults(running_cloud(home))
    if as_json:
        print_json(json.dumps(faults_now))
        return
    for fault in faults_now:
        say(f"{_fault_line(fault)}: struck {fault['done']} of {fault['seen']} calls ({fault['id']})")
    if not faults_now:
        say("No faults are set.")


@faults.command("clear")
@home_option
@click.argument("identifier", required=False, default="")
def clear_faults_command(home: Path | None, identifier: str) -> None:
    """End one fault, or all."""
    from localcloud.admin import clear_faults

    ended = clear_faults(running_cloud(home), identifier)
    say(f"Ended {ended} fault{'' if ended == 1 else 's'}.")


def _fault_line(fault: dict[str, Any]) -> str:
    settings = (f"{name} {value}" for name, value in fault.items() if name not in ("id", "kind", "seen", "done"))
    return ", ".join((fault["kind"], *settings))


@click.group("cloud", cls=ErrorReportingGroup)
def cloud() -> None:
    """Control the local cloud: the APIs of OCI, AWS and OpenPAI on this machine, without an account."""


@cloud.command("start")
@home_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
@isolation_option
def start_cloud_command(home: Path | None, port: int, isolation: str) -> None:
    """Start the local cloud, unless it runs already."""
    from localcloud.code_age import why_cloud_is_older
    from localcloud.control import start_cloud
    from localcloud.environments.network_tools import make_network_tools_if_possible
    from trainyard.engine.progress import Progress

    make_network_tools_if_possible(Progress())
    started = start_cloud(cloud_home(home), port, isolation=isolation)
    require_isolation(started, isolation, f"trainyard cloud start --isolation {WHERE_POSSIBLE}", starts_runs=False)
    if port and not started.endpoint.endswith(f":{port}"):
        raise click.ClickException(
            f"The local cloud runs already, at {started.endpoint}.\n"
            "To use another port, stop it first: trainyard cloud stop"
        )
    say(f"The local cloud answers at {started.endpoint} (pid {started.pid}).")
    say(f"Compartment for stacks of OCI: {started.compartment}")
    if older := why_cloud_is_older(started.home):
        say(older)
    say('Point other clients at it with: eval "$(trainyard cloud env)"')


@cloud.command("stop")
@home_option
def stop_cloud_command(home: Path | None) -> None:
    """Stop the local cloud and end its runs. Its data is kept."""
    from localcloud.control import stop_cloud

    say("Stopped." if stop_cloud(cloud_home(home)) else f"No local cloud ran in {cloud_home(home)}.")


@cloud.command("status")
@home_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def cloud_status_command(home: Path | None, as_json: bool) -> None:
    """Show whether the local cloud runs. Also shows where its console and its APIs are, and whether it enforces
    security rules between nodes."""
    from localcloud.admin import why_not_enforced
    from localcloud.clients import platform_clients
    from localcloud.code_age import why_cloud_is_older
    from localcloud.control import CloudError, find_running_cloud, why_cloud_is_silent

    running_now = find_running_cloud(cloud_home(home))
    try:
        reason = why_not_enforced(running_now) if running_now else ""
    except CloudError as error:
        reason = str(error)
    older = why_cloud_is_older(running_now.home) if running_now else ""
    if as_json:
        facts: dict[str, object] = {}
        if running_now:
            facts = {"endpoint": running_now.endpoint, "pid": running_now.pid, "compartment": running_now.compartment}
            facts |= {"console": f"{running_now.endpoint}/console"}
            for clients in platform_clients():
                facts |= clients.facts(running_now)
            facts |= {"rulesEnforced": not reason, "rulesNotEnforcedBecause": reason}
            facts |= {"codeChanged": bool(older), "codeChangedBecause": older}
        print_json(json.dumps({"running": running_now is not None, "home": str(cloud_home(home)), **facts}))
    elif running_now:
        say(f"It runs at {running_now.endpoint} (pid {running_now.pid}), from {running_now.home}.")
        say(f"Console: {running_now.endpoint}/console")
        for clients in platform_clients():
            say(clients.place(running_now))
        say('Their clients come here after: eval "$(trainyard cloud env)"')
        say("The Python SDK of OCI reads no variable for its endpoint: give its clients `service_endpoint`.")
        if reason:
            say(f"Security rules are not enforced between the nodes of job runs: {reason}")
        if older:
            say(older)
    else:
        say(why_cloud_is_silent(cloud_home(home)) or f"No local cloud runs in {cloud_home(home)}.")
    if not running_now:
        raise click.exceptions.Exit(1)


@cloud.command("reset")
@home_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset_cloud_command(home: Path | None, yes: bool) -> None:
    """Stop the local cloud and delete all its data: resources, objects, logs, keys."""
    from localcloud.control import reset_cloud

    folder = cloud_home(home)
    if not yes:
        ask_yes_or_no(f"Remove the local cloud in {folder} with everything in it?", abort=True)
    reset_cloud(folder)
    say(f"Removed {folder}.")


@cloud.command("log")
@home_option
@click.option("--lines", "-n", type=click.IntRange(1), default=40, show_default=True)
def cloud_log_command(home: Path | None, lines: int) -> None:
    """Show the local cloud's log. It has every call, and why a call was refused."""
    path = cloud_home(home) / "server.log"
    if not path.exists():
        raise click.ClickException(f"There is no log at {path}.\nThe local cloud was never started there.")
    say("\n".join(path.read_text(errors="replace").splitlines()[-lines:]))


@cloud.command("env")
@home_option
@click.option("--profile", type=click.Choice(["deployer", "user"]), default="deployer", show_default=True)
@click.option("--resource", help="Act as the notebook session or job run of OCI with this OCID, not as a profile.")
@click.option("--pulumi", is_flag=True, help="Also what plain `pulumi` needs for the local stacks beside this cloud.")
@isolation_option
def cloud_variables_command(
    home: Path | None, profile: str, resource: str | None, pulumi: bool, isolation: str
) -> None:
    """Print the variables for the clients of OCI, AWS and OpenPAI. Set them with: eval "$(trainyard cloud env)"."""
    from localcloud.admin import issue_resource_principal

    cloud = running_cloud(home)
    # Whatever is started with these variables runs there: plain `pulumi up` asks nobody else.
    require_isolation(cloud, isolation, f"trainyard cloud env --isolation {WHERE_POSSIBLE}", starts_runs=False)
    principal = issue_resource_principal(cloud, resource) if resource else {}
    variables: dict[str, str] = {}
    if pulumi:
        from trainyard.engine.obtain import local_stack_environment

        # Plain `pulumi` then runs as under `up --local`.
        for_pulumi = local_stack_environment(cloud.home.parent)
        variables = {name: value for name, value in for_pulumi.items() if os.environ.get(name) != value}
        for name in (name for name in os.environ if name not in for_pulumi):
            print_data(f"unset {name}")
    for name, value in {**variables, **cloud.env_for(profile), **principal}.items():
        print_data(f"export {name}={shlex.quote(value)}")


@cloud.command("push")
@home_option
@click.argument("image")
@click.option("--entrypoint", help="The image's entry point; by default that of trainyard's own images.")
@click.option("--cmd", help="The default arguments of the entry point.")
def push_to_cloud_command(home: Path | None, image: str, entrypoint: str | None, cmd: str | None) -> None:
    """Name an image in the registry. IMAGE is address:tag, or has @sha256:…; no content is pushed."""
    from localcloud.admin import push_image

    pushed = push_image(running_cloud(home), image, shlex.split(entrypoint or ""), shlex.split(cmd or ""))
    say(f"{image} has the digest {pushed['digest']}.")


cloud.add_command(faults)
