# SPDX-License-Identifier: Apache-2.0
"""`trainyard cloud faults`: makes the local cloud fail on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from trainyard.cli.out import json_data, say
from trainyard.cli.running import home_option, running_cloud

_KINDS = (
    "latency", "status", "drop", "lost-answer", "no-capacity", "limit", "transition", "token", "access",
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
    limit        --limit vcn-count --value 1   a limit of the service is lower
    transition   --seconds N        resources take N seconds to be made or removed
    token        --seconds N        the tokens of runs and notebooks end after N seconds
    access       --seconds N        policies and dynamic groups take effect N seconds late
    """


@faults.command()
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
def add(home: Path | None, kind: str, **settings: Any) -> None:
    """Add a fault."""
    from localcloud.admin import add_fault

    given = {name: value for name, value in settings.items() if value is not None}
    added = add_fault(running_cloud(home), kind, **given)
    say(f"Added: {_line(added)}\nEnd it with: trainyard cloud faults clear {added['id']}")


@faults.command("list")
@home_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(home: Path | None, as_json: bool) -> None:
    """Show the faults, and how often each has struck."""
    from localcloud.admin import list_faults

    faults_now = list_faults(running_cloud(home))
    if as_json:
        json_data(json.dumps(faults_now))
        return
    for fault in faults_now:
        say(f"{_line(fault)}: struck {fault['done']} of {fault['seen']} calls ({fault['id']})")
    if not faults_now:
        say("No faults are set.")


@faults.command()
@home_option
@click.argument("identifier", required=False, default="")
def clear(home: Path | None, identifier: str) -> None:
    """End one fault, or all."""
    from localcloud.admin import clear_faults

    ended = clear_faults(running_cloud(home), identifier)
    say(f"Ended {ended} fault{'' if ended == 1 else 's'}.")


def _line(fault: dict[str, Any]) -> str:
    settings = (f"{name} {value}" for name, value in fault.items() if name not in ("id", "kind", "seen", "done"))
    return ", ".join((fault["kind"], *settings))
