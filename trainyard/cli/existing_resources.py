# SPDX-License-Identifier: Apache-2.0
"""`trainyard init --existing`: reads resources that exist, and `--import`: writes their ids for `pulumi import`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from catalog.platforms import require_capability
from schemas.name_suggestions import quoted_list
from trainyard.cli.out import say, say_aside
from trainyard.cli.planning import running_cloud
from trainyard.local.places import CHECKOUT, own_command, stacks_words

if TYPE_CHECKING:
    from components.platform.client import Where
    from components.platform.existing import FoundResources

_MOST_NAMED = 6


def read_existing(
    platform: str, ids: Sequence[str], manages: bool, config: Mapping[str, Any], local: bool, profile: str | None
) -> tuple[Where, FoundResources]:
    """What these resources say, and where they are. `config`: keys of the new stack file that say where to look."""
    from components.platform.client import Where
    from components.platform.existing import ExistingResources

    where = Where(config, running_cloud(None) if local else None, tell=say_aside, profile=profile)
    return where, require_capability(platform, ExistingResources).read(ids, where, manages)


def write_import_file(file: Path, stack: str, platform: str, ids: Sequence[str], where: Where) -> None:
    """Writes the ids of what the stack would make and the cloud already has, and says how to import them."""
    from components.platform.existing import ExistingResources
    from trainyard.bring.import_file import import_file_text
    from trainyard.review.recorder import RecordingError, RecordingProcess

    try:
        with RecordingProcess(CHECKOUT, (file.parent.resolve(),)) as process:
            snapshot = process.record(file, platform).snapshot
    except RecordingError as error:
        raise click.ClickException(f"the program of {stack} failed: {error}") from error
    if snapshot.refused:
        raise click.ClickException(f"{file} is written, but its stack cannot be made so: {snapshot.refused}")
    found = require_capability(platform, ExistingResources).find_ids(snapshot, ids, where)
    try:
        of_package = version(found.package)
    except PackageNotFoundError as error:
        raise click.ClickException(f"the ids for `pulumi import` need the Python package {found.package}") from error
    target = file.with_name(f"{stack}.import.json")
    try:
        with target.open("x", encoding="utf-8") as new:
            new.write(import_file_text(snapshot, found.ids, of_package))
    except FileExistsError:
        raise click.UsageError(f"{target} exists already, and is never overwritten: remove it first") from None
    say(f"{target} is written: the ids of {len(found.ids)} resources for `pulumi import`.")
    if found.missing:
        more = f" and {len(found.missing) - _MOST_NAMED} more" if len(found.missing) > _MOST_NAMED else ""
        names = quoted_list(list(found.missing[:_MOST_NAMED]))
        say(f"  not found by its name, so `up` would make it: {names}{more}")
    if where.cloud is not None:
        words = [own_command(), "import", stack, "--local", *stacks_words(file.parent)]
        say(f"Next: {shlex.join([*words, '--protect=false', '--file', str(target)])}")
    else:
        words = ["pulumi", "import", "-s", stack, "--protect=false", "--generate-code=false", "--file", str(target)]
        say(f"Next: pulumi stack init {stack} && {shlex.join(words)}")
