# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift`: shows how a stack's cloud differs from what its last `up` made."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from components.plan.show import json_text
from schemas.name_suggestions import count_noun
from trainyard.cli.errors import ResultCommand
from trainyard.cli.out import print_json, say
from trainyard.cli.planning import (
    find_stack_file,
    home_option,
    named_place,
    place_option,
    profile_option,
    running_cloud,
    stacks_option,
)
from trainyard.local.places import hint_of_other_clouds

if TYPE_CHECKING:
    from localcloud.control import Cloud
    from trainyard.drift.compare import Drift

_WORDS = {
    "opens": "opens", "closes": "closes", "gains": "gains", "loses": "loses", "undeclared": "new", "gone": "gone",
    "changed": "changed", "run": "run",
}  # fmt: skip


@click.command(cls=ResultCommand)
@click.argument("stack", metavar="[STACK_OR_FILE]", required=False)
@stacks_option
@click.option("--local", is_flag=True, help="The stack on the local cloud, which `trainyard up --local` brought up.")
@home_option
@place_option("the runs are")
@profile_option
@click.option(
    "--state", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="A file with the output of `pulumi stack export`, if Pulumi cannot read the state here.",
)  # fmt: skip
@click.option(
    "--known", multiple=True, metavar="PRINCIPAL_OR_STACK",
    help="Do not report access of this principal, such as `group Administrators`, or of a stack whose state is in "
    "another backend, such as `stack speech-prod`; may be repeated.",
)  # fmt: skip
@click.option("--partial", is_flag=True, help="Exit with 0 also if a part of the stack could not be read.")
@click.option(
    "--orphans", is_flag=True,
    help="Show what says that trainyard made it and is in no state at hand: of STACK, or of every stack.",
)  # fmt: skip
@click.option("--remove", is_flag=True, help="With --orphans: remove them. Asks first.")
@click.option("--yes", "-y", is_flag=True, help="With --remove: do not ask. Needs STACK.")
@click.option(
    "--delete-data", is_flag=True, help="With --remove: also buckets with objects and repositories with images."
)
@click.option(
    "--prices", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
    help="With --orphans: a team's own prices, as for `trainyard review`.",
)  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)
def drift(
    stack: str | None, stacks: Path, local: bool, home: Path | None, place: str | None, profile: str | None,
    state: Path | None, known: tuple[str, ...], partial: bool, orphans: bool, remove: bool, yes: bool,
    delete_data: bool, prices: Path | None, form: str,
) -> None:  # fmt: skip
    """Show what was changed in the cloud of STACK_OR_FILE outside of Pulumi: rules, access, machines, runs.

    \b
    trainyard drift vision-prod
    trainyard drift vision-dev --local
    trainyard drift --local                 every stack that is up on the local cloud
    trainyard drift --orphans               what no state at hand has, in the cloud of each stack file
    trainyard drift vision-dev --orphans --remove

    Compares what the stack's last `up` requested with what the cloud has now. Rules and statements are compared by what
    they allow, as in `trainyard review`. Resources that no stack declares, such as a rule added by hand, are shown too.
    Nothing is changed. Exits with 0 if there is no drift, with 1 if there is some, and with 2 if it cannot tell, for
    example because the caller may not read a part of the stack. With --orphans: 0 if there are none, 1 if there are, or
    if some are left after --remove.
    """
    if orphans:
        from trainyard.cli.orphans import OrphanRequest, show_orphans

        request = OrphanRequest(stack, stacks, local, home, place, profile, state, known, delete_data, prices)
        sys.exit(show_orphans(request, remove, yes, partial, form))
    if remove or yes or delete_data or prices:
        raise click.UsageError("--remove, --yes, --delete-data and --prices are for --orphans")
    cloud = running_cloud(home, named_place(stack, stacks)[0] if stack else "") if local or home else None
    if stack is not None:
        names: Sequence[str] = [stack]
    elif cloud is None:
        raise click.UsageError("which stack? Name it, or its file; with --local every stack that is up is compared")
    else:
        from components.platform.local import stacks_up

        names = stacks_up(cloud.home)
        if not names:
            raise click.ClickException(f"no stack is up on the local cloud in {cloud.home}")
    if state is not None and len(names) != 1:
        raise click.UsageError("--state is the state of one stack: name the stack")
    drifts = [_find_drift_of_stack(name, stacks, cloud, place, profile, state, known) for name in names]
    if form == "json":
        print_json(json_text([drift_json(drift) for drift in drifts]))
    else:
        say("\n".join(line for drift in drifts for line in drift_lines(drift)))
    if any(drift.remarks for drift in drifts):
        sys.exit(1)
    if any(drift.unread for drift in drifts) and not partial:
        sys.exit(2)


def drift_lines(drift: Drift) -> Iterator[str]:
    """The output for one stack. A single line if there is no drift and everything could be read."""
    if not drift.remarks and drift.unread:
        parts = count_noun(len(drift.unread), "part")
        yield f"{drift.stack}: cannot tell: {parts} could not be read; no drift in the others"
    elif not drift.remarks:
        yield f"{drift.stack}: no drift: its cloud has what the last `up` made"
    else:
        yield f"{drift.stack}: {count_noun(len(drift.remarks), 'difference')} from what the last `up` made"
        yield from (f"  {_WORDS[remark.kind]:8} {remark.words}" for remark in drift.remarks)
        if any(remark.kind != "run" for remark in drift.remarks):
            yield "  To undo it: `pulumi up --refresh`; resources that no stack declares must be removed by hand"
    yield from (f"  not read {part}" for part in drift.unread)


def _find_drift_of_stack(
    named: str, stacks: Path, cloud: Cloud | None, place: str | None, profile: str | None, state: Path | None,
    known: tuple[str, ...],
) -> Drift:  # fmt: skip
    from catalog.platforms import platform_in
    from components.platform.calls import ProviderError
    from components.platform.local import deployed_files
    from trainyard.cli.run_selection import config_of, where_of
    from trainyard.drift import declared
    from trainyard.drift.find_drift import find_drift
    from trainyard.drift.other_stacks import exported_stack_states, local_stack_states

    stack, _ = named_place(named, stacks)
    copy = deployed_files(cloud.home, stacks).get(stack) if cloud is not None else None
    file = copy or find_stack_file(named, stacks)
    config = config_of(file)
    try:
        platform = platform_in(config)
        if state is not None:
            made = declared.of_export(state.read_text("utf-8", "replace"), stack, platform)
        elif cloud is not None:
            made = declared.of_local(cloud.home, stack, platform)
            made = replace(made, state_of=local_stack_states(cloud.home, platform))
        else:
            made = declared.of_export(declared.export_state(stack, file), stack, platform)
            made = replace(made, state_of=exported_stack_states(file, platform))
        made = declared.with_names(made, config)
        where = where_of(file, cloud, place, profile)
        return find_drift(made, where, known)
    except (declared.DriftError, ProviderError) as error:
        other = hint_of_other_clouds(stack, cloud.home.parent) if cloud is not None else ""
        raise click.ClickException(f"{stack}: {error}{other}") from error


def drift_json(drift: Drift) -> dict[str, object]:
    """The drift of one stack for programs (`--format json`)."""
    return {
        "stack": drift.stack,
        "platform": drift.platform,
        "drift": bool(drift.remarks),
        "remarks": [
            {"kind": remark.kind, "words": remark.words, "resource": remark.resource} for remark in drift.remarks
        ],
        "unread": list(drift.unread),
    }
