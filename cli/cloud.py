# SPDX-License-Identifier: Apache-2.0
"""`trainyard cloud`: start, look at and end the local cloud."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from cli.faults import faults
from cli.out import ask, data, json_data, say
from cli.problems import TellingGroup
from cli.running import cloud_home, home_option, isolation_option, known_home, running_cloud


@click.group("cloud", cls=TellingGroup)
def cloud() -> None:
    """The local cloud: OCI's own API on this machine, without an account."""


@cloud.command()
@home_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@isolation_option
def start(home: Path | None, port: int, isolation: str) -> None:
    """Start it, unless it runs already."""
    from localcloud.control import start as start_cloud

    started = start_cloud(cloud_home(home), port, isolation=isolation)
    if port and not started.endpoint.endswith(f":{port}"):
        raise click.ClickException(
            f"It runs already, at {started.endpoint}.\nFor another port, first: trainyard cloud stop"
        )
    say(f"The local cloud answers at {started.endpoint} (pid {started.pid}).")
    say(f"Compartment for stacks: {started.compartment}")
    say('Point other clients at it with: eval "$(trainyard cloud env)"')


@cloud.command()
@home_option
def stop(home: Path | None) -> None:
    """End it, with every run that it has going; what it knows is kept."""
    from localcloud.control import stop as stop_cloud

    say("Stopped." if stop_cloud(known_home(home)) else f"No local cloud ran in {known_home(home)}.")


@cloud.command()
@home_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(home: Path | None, as_json: bool) -> None:
    """Say whether it runs, where, and whether its nodes stand behind their subnets' rules."""
    from localcloud.admin import why_not_enforced
    from localcloud.control import CloudError, running

    found = running(known_home(home))
    try:
        reason = why_not_enforced(found) if found else ""
    except CloudError as error:
        reason = str(error)
    if as_json:
        facts: dict[str, object] = {}
        if found:
            facts = {"endpoint": found.endpoint, "pid": found.pid, "compartment": found.compartment}
            facts |= {"rulesEnforced": not reason, "rulesNotEnforcedBecause": reason}
        json_data(json.dumps({"running": found is not None, "home": str(known_home(home)), **facts}))
    elif found:
        say(f"It runs at {found.endpoint} (pid {found.pid}), from {found.home}.")
        if reason:
            say(f"Security rules are not enforced between the nodes of job runs: {reason}")
    else:
        say(f"No local cloud runs in {known_home(home)}.")
    if not found:
        raise click.exceptions.Exit(1)


@cloud.command()
@home_option
@click.option("--yes", is_flag=True, help="Don't ask.")
def reset(home: Path | None, yes: bool) -> None:
    """End it and forget everything in it: resources, objects, logs, keys."""
    from localcloud.control import reset as reset_cloud

    folder = cloud_home(home)
    if not yes:
        ask(f"Remove the local cloud in {folder} with all it holds?", abort=True)
    reset_cloud(folder)
    say(f"Removed {folder}.")


@cloud.command()
@home_option
@click.option("--lines", "-n", type=click.IntRange(1), default=40, show_default=True)
def log(home: Path | None, lines: int) -> None:
    """Show its own log: every call, and in words why one was refused."""
    path = known_home(home) / "server.log"
    if not path.exists():
        raise click.ClickException(f"There is no log at {path}.\nThe local cloud was never started there.")
    say("\n".join(path.read_text(errors="replace").splitlines()[-lines:]))


@cloud.command()
@home_option
@click.option("--profile", type=click.Choice(["deployer", "user"]), default="deployer", show_default=True)
@click.option("--resource", help="Act as this notebook session or job run (its OCID) instead of a profile.")
def env(home: Path | None, profile: str, resource: str | None) -> None:
    """Print what points OCI's clients at it: eval "$(trainyard cloud env)"."""
    from localcloud.admin import resource_principal

    cloud = running_cloud(home)
    principal = resource_principal(cloud, resource) if resource else {}
    for name, value in {**cloud.env_for(profile), **principal}.items():
        data(f"export {name}={shlex.quote(value)}")


@cloud.command()
@home_option
@click.argument("image")
@click.option("--entrypoint", help="How the image starts; by default as trainyard's own images do.")
@click.option("--cmd", help="Its default arguments.")
def push(home: Path | None, image: str, entrypoint: str | None, cmd: str | None) -> None:
    """Put IMAGE (address:tag, or with @sha256:…) into the registry, without its content."""
    from localcloud.admin import push_image

    pushed = push_image(running_cloud(home), image, shlex.split(entrypoint or ""), shlex.split(cmd or ""))
    say(f"{image} has the digest {pushed['digest']}.")


cloud.add_command(faults)
