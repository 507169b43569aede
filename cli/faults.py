# SPDX-License-Identifier: Apache-2.0
"""`trainyard cloud faults`: what is to go wrong on the local cloud, on purpose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cli.out import json_data, say
from cli.running import home_option, running_cloud

_KINDS = (
    "latency", "status", "drop", "lost-answer", "no-capacity", "limit", "transition", "token", "access",
)  # fmt: skip


@click.group()
def faults() -> None:
    """Make calls slow, refused or lost, capacity scarce, access late.

    \b
    latency      --seconds N        the answer takes so much longer
    status       --status N         429, 500, 503 …: refused before anything is done
    drop                            the connection ends before anything is done
    lost-answer                     the call is done, its answer never comes
    no-capacity  --shape 'VM.GPU*'  out of host capacity
    limit        --limit vcn-count --value 1
    transition   --seconds N        what is made or removed takes so long until it is
    token        --seconds N        the tokens of runs and notebooks end after so long
    access       --seconds N        policies and dynamic groups come into force late
    """


@faults.command()
@home_option
@click.argument("kind", type=click.Choice(_KINDS))
@click.option("--operations", help="A pattern such as 'Create*' or GetVcn; by default every operation.")
@click.option("--rate", type=float, help="How often, from 0 to 1; by default always.")
@click.option("--seed", type=int, help="The same seed strikes the same calls.")
@click.option("--times", type=int, help="How many times at most.")
@click.option("--seconds", type=float)
@click.option("--status", type=int)
@click.option("--code", help="The error code, where another than the usual is wanted.")
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
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_(home: Path | None, as_json: bool) -> None:
    """Show them, and how often each has struck."""
    from localcloud.admin import list_faults

    found = list_faults(running_cloud(home))
    if as_json:
        json_data(json.dumps(found))
        return
    for fault in found:
        say(f"{_line(fault)}: struck {fault['done']} of {fault['seen']} calls ({fault['id']})")
    if not found:
        say("Nothing goes wrong on purpose.")


@faults.command()
@home_option
@click.argument("identifier", required=False, default="")
def clear(home: Path | None, identifier: str) -> None:
    """End one, or all."""
    from localcloud.admin import clear_faults

    ended = clear_faults(running_cloud(home), identifier)
    say(f"Ended {ended} fault{'' if ended == 1 else 's'}.")


def _line(fault: dict[str, Any]) -> str:
    settings = (f"{name} {value}" for name, value in fault.items() if name not in ("id", "kind", "seen", "done"))
    return ", ".join((fault["kind"], *settings))
