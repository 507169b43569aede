# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift --orphans`: shows what no state at hand has, and removes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from catalog.platforms import (
    PLATFORM_KEY,
    Lacks,
    find_capability,
    platform_in,
    platform_word,
    platforms,
    platforms_with,
)
from components.plan.show import json_text
from components.platform.calls import ProviderError, call_of
from components.platform.client import UnknownPlaceError, Where
from components.platform.owned import OwnedQuestion, OwnedReading, OwnedResources, delete_in_turn
from launcher.escaping import terminal_line
from schemas.name_suggestions import count_noun
from trainyard.cli.out import ask_yes_or_no, print_json, say, say_aside
from trainyard.cli.planning import is_file_name, named_place, running_cloud
from trainyard.cli.run_selection import config_of, where_of
from trainyard.drift.declared import DriftError
from trainyard.drift.orphans import (
    Orphan,
    StatesAtHand,
    find_orphans,
    state_of_export,
    states_of_backend,
    states_of_local_stacks,
)
from trainyard.engine.trusted import private_folder
from trainyard.local.cloud_use import StackClaim, refuse_if_locked, remove_dead_locks
from trainyard.review.cost_items import format_dollars
from trainyard.review.costs import PricesError, read_prices

if TYPE_CHECKING:
    from localcloud.control import Cloud

# Tags come from anybody. Only such a name can be that of a stack whose lock is a file.
_STACK_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


@dataclass(frozen=True)
class OrphanRequest:
    """The arguments of the command that say where to look, and whose states count."""

    stack: str | None
    stacks: Path
    local: bool
    home: Path | None
    place: str | None
    profile: str | None
    state: Path | None
    known: tuple[str, ...]
    delete_data: bool
    prices: Path | None


@dataclass(frozen=True)
class AskedCloud:
    """What one cloud answered."""

    owned: OwnedResources
    question: OwnedQuestion
    reading: OwnedReading


def show_orphans(request: OrphanRequest, remove: bool, yes: bool, partial: bool, form: str) -> int:
    """The exit code of the command."""
    if (yes or request.delete_data) and not remove:
        raise click.UsageError("--yes and --delete-data are for --remove")
    if yes and not request.stack:
        raise click.UsageError(
            "--yes needs STACK: nobody looks at the list, and a stack whose state is in another backend looks like an "
            "orphan"
        )
    stack = named_place(request.stack, request.stacks)[0] if request.stack else None
    cloud = running_cloud(request.home, stack or "") if request.local or request.home else None
    try:
        states = read_states_at_hand(request, cloud)
        prices = read_prices(request.prices) if request.prices else {}
    except (DriftError, PricesError) as error:
        raise click.ClickException(str(error)) from error
    clouds, unread = ask_each_cloud(request, stack, cloud, prices)
    unread = [*states.unread, *unread]
    readings = [asked.reading for asked in clouds]
    orphans = find_orphans(readings, states, request.known, request.delete_data)
    if form == "text":
        say("\n".join(orphan_lines(orphans, states, unread)))
    gone: dict[str, str] = {}
    if remove and orphans:
        gone = remove_orphans(orphans, states, clouds, cloud, yes, form)
    if form == "json":
        print_json(json_text(orphans_json(orphans, unread, gone)))
    if any(gone.get(orphan.resource.id, "left") for orphan in orphans):
        return 1
    return 2 if unread and not partial else 0


def read_states_at_hand(request: OrphanRequest, cloud: Cloud | None) -> StatesAtHand:
    given = () if request.state is None else (state_of_export(request.state.read_text("utf-8", "replace")),)
    if cloud is not None:
        states = states_of_local_stacks(cloud.home)
    elif given:
        return StatesAtHand(given)
    else:
        states = states_of_backend(_stack_files(request)[0])
    return replace(states, states=(*states.states, *given))


def _stack_files(request: OrphanRequest) -> list[Path]:
    """The stack files that say which clouds there are: that of STACK, or without one all of the folder."""
    if request.stack and is_file_name(request.stack):
        return [Path(request.stack)]
    files = sorted(request.stacks.glob("Pulumi.*.yaml"))
    if own := [file for file in files if file.name == f"Pulumi.{request.stack}.yaml"]:
        return own
    if not files:
        raise click.UsageError(
            f"no Pulumi.*.yaml in {request.stacks}/ says which cloud to ask: name another folder with --stacks, or add "
            "--local"
        )
    return files


def ask_each_cloud(
    request: OrphanRequest, stack: str | None, cloud: Cloud | None, prices: Mapping[str, Any]
) -> tuple[list[AskedCloud], list[str]]:
    """What each cloud answered, and what could not be asked."""
    clouds: list[AskedCloud] = []
    unread: dict[str, None] = {}
    for platform, where in places_to_ask(request, cloud):
        owned, word = find_capability(platform, OwnedResources), platform_word(platform)
        if isinstance(owned, Lacks):
            unread[f"{word}: {owned.reason}"] = None
            continue
        question = OwnedQuestion(where, stack, prices)
        try:
            reading = owned.find(question)
        except (ProviderError, UnknownPlaceError) as error:
            unread[f"{word}: {error.cause if isinstance(error, ProviderError) else error}"] = None
            continue
        clouds.append(AskedCloud(owned, question, reading))
        unread |= dict.fromkeys(reading.unread)
    return clouds, list(unread)


def places_to_ask(request: OrphanRequest, cloud: Cloud | None) -> Iterator[tuple[str, Where]]:
    """Each cloud once. The local cloud serves all platforms that can be asked."""
    if cloud is not None:
        for platform in platforms_with(OwnedResources):
            where = Where({PLATFORM_KEY: platform}, cloud, request.place, say_aside, request.profile)
            yield platform, where
        return
    asked = set()
    for file in _stack_files(request):
        config = config_of(file)
        platform = platform_in(config)
        row = platforms().get(platform)
        own = (f"{row.provider}:" if row and row.provider else "trainyard:", "trainyard:compartment")
        key = (platform, *sorted((name, str(value)) for name, value in config.items() if name.startswith(own)))
        if key not in asked:
            asked.add(key)
            yield platform, where_of(file, None, request.place, request.profile)


def orphan_lines(orphans: Sequence[Orphan], states: StatesAtHand, unread: Sequence[str]) -> Iterator[str]:
    at_hand = ", ".join(sorted({state.stack for state in states.states if any(state.made())})) or "none"
    if not orphans:
        yield f"no orphans{' in what could be read' if unread else ''}; states at hand: {at_hand}"
    else:
        stacks = sorted({orphan.resource.stack for orphan in orphans})
        yield f"{count_noun(len(orphans), 'orphan')} of {count_noun(len(stacks), 'stack')}; states at hand: {at_hand}"
        for stack in stacks:
            own = [orphan for orphan in orphans if orphan.resource.stack == stack]
            costs = [orphan.resource.cost.usd_per_hour for orphan in own]
            unknown = f", and {costs.count(None)} of unknown cost" if None in costs else ""
            known = format_dollars(sum(cost for cost in costs if cost is not None))
            yield f"{terminal_line(stack)}: {count_noun(len(own), 'orphan')}, {known} an hour{unknown}"
            for orphan in own:
                one = orphan.resource
                cost = (
                    one.cost.source
                    if one.cost.usd_per_hour == 0
                    else f"{format_dollars(one.cost.usd_per_hour)} an hour"
                )
                since = "an unknown time" if one.since is None else f"{one.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
                yield terminal_line(f"  {one.words}, since {since}, {cost}, owner {one.owner or 'unknown'}")
                yield terminal_line(f"    {one.id} in {one.place}")
                if orphan.stays:
                    yield terminal_line(f"    stays: {orphan.stays}")
    yield from (f"  not read {terminal_line(part)}" for part in unread)


def remove_orphans(
    orphans: Sequence[Orphan], states: StatesAtHand, clouds: Sequence[AskedCloud], cloud: Cloud | None, yes: bool,
    form: str,
) -> dict[str, str]:  # fmt: skip
    """Removes what may go. By id, why a resource is still there: empty if it is gone."""
    if states.unread:
        raise click.ClickException("Nothing was removed: what an unread state has is not known.")
    result = {orphan.resource.id: orphan.stays for orphan in orphans if orphan.stays}
    going = {orphan.resource.id: orphan.resource for orphan in orphans if not orphan.stays}
    tell = say if form == "text" else say_aside
    if not going:
        tell("Nothing was removed: all of them stay.")
        return result
    if not yes and not ask_yes_or_no(f"Remove {count_noun(len(going), 'resource')}? Nothing brings them back."):
        tell("Nothing was removed.")
        return {}
    claims = claim_local_stacks({resource.stack for resource in going.values()}, cloud)
    for asked in clouds:
        # A cloud that was asked twice, by two stack files, is changed once.
        own = [going.pop(one.id) for one in asked.reading.resources if one.id in going]
        for resource, why in delete_in_turn(call_of("drift", say_aside), own, asked.owned.deleter(asked.question)):
            result[resource.id] = why
            tell(terminal_line(f"  {'left' if why else 'removed'} {resource.words}{f': {why}' if why else ''}"))
    claims.clear()
    left = sum(bool(why) for why in result.values())
    tell(f"{count_noun(len(result) - left, 'resource')} removed, {left} left")
    return result


def claim_local_stacks(stacks: Iterable[str], cloud: Cloud | None) -> list[StackClaim]:
    """The locks of these stacks, so that no `up` works on them meanwhile. A backend elsewhere has no such locks."""
    if cloud is None:
        return []
    home = cloud.home.parent / "pulumi"
    locks, claims = home / "state" / ".pulumi" / "locks", []
    for stack in sorted(stack for stack in stacks if _STACK_NAME.fullmatch(stack)):
        claims.append(StackClaim(private_folder(home) / f"claim-{stack}.lock", stack))
        remove_dead_locks(locks, stack)
        refuse_if_locked(locks, stack)
    return claims


def orphans_json(orphans: Sequence[Orphan], unread: Sequence[str], result: Mapping[str, str]) -> dict[str, object]:
    """For programs (`--format json`). `removed` is null where no removal was asked for."""
    return {
        "orphans": [
            {
                "stack": orphan.resource.stack,
                "type": orphan.resource.token,
                "id": orphan.resource.id,
                "words": orphan.resource.words,
                "place": orphan.resource.place,
                "since": orphan.resource.since.isoformat() if orphan.resource.since else None,
                "usdPerHour": orphan.resource.cost.usd_per_hour,
                "owner": orphan.resource.owner,
                "stays": result.get(orphan.resource.id, orphan.stays),
                "removed": not result[orphan.resource.id] if orphan.resource.id in result else None,
            }
            for orphan in orphans
        ],
        "unread": list(unread),
    }
