# SPDX-License-Identifier: Apache-2.0
"""Selects runs, and the place where they are, by the arguments of `trainyard runs` and similar commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from catalog.platforms import PLATFORM_KEY, platform_in, platforms_with
from components.platform.calls import ProviderError
from components.platform.client import RunClients, UnknownPlaceError, Where
from components.platform.local import deployed_files
from components.platform.status import MachineSeen, RunStatus, WantedRuns, parse_json
from schemas.each import swept_keys
from schemas.load import load_file, stack_name
from schemas.name_suggestions import suggest_name
from schemas.source import read_source
from trainyard.cli.out import say_aside
from trainyard.cli.planning import (
    find_stack_file,
    home_option,
    is_file_name,
    place_option,
    profile_option,
    running_cloud,
    stacks_option,
)
from trainyard.cli.waiting import show_waiting
from trainyard.local.places import cloud_home, hint_of_other_clouds
from trainyard.runs.run_looks import Look, SeveralLooks, TrafficReader, look_for

if TYPE_CHECKING:
    from localcloud.control import Cloud


JOBS_KEY = "trainyard:jobs"


@dataclass(frozen=True)
class RunSelection:
    """The runs that the user selected, and where to look for them."""

    look: Look | SeveralLooks
    where: Where
    wanted: WantedRuns
    # The stack's file, where there is one.
    file: Path | None = None

    def file_of(self, stack: str) -> Path | None:
        """The file of a run's stack, if it is known here."""
        cloud = self.where.cloud
        return self.file or (deployed_files(cloud.home).get(stack) if cloud is not None else None)

    def seen(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """The selected runs. If the cloud cannot be reached, the error suggests the local cloud."""
        try:
            with show_waiting("looking at the runs"):
                return self.look.look(deeply, history)
        except ProviderError as error:
            raise click.ClickException(f"{error}{self._other_cloud()}") from error

    def runs(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        """The selected runs. If there are none, the command ends with a message."""
        runs = self.seen(deeply, history)
        if not runs:
            raise click.ClickException(self.nothing())
        return runs

    def machines(self) -> Sequence[MachineSeen] | None:
        """The selected machines that stay between runs. None if the caller may not see them; the reason is printed."""
        try:
            return self.look.machines()
        except ProviderError as error:
            say_aside(f"machines are not shown: {error}")
            return None

    def nothing(self) -> str:
        named = "/".join(filter(None, (self.wanted.job, self.wanted.run)))
        of = f" of the stack {self.wanted.stack}" if self.wanted.stack else ""
        return (
            f"No runs{f' {named}' if named else ''}{of} in {self.look.where}{self._suggest_run(named)}.\n"
            "`trainyard runs` shows all runs; a stack's runs start with `pulumi up` (`trainyard up --local`)."
            f"{self._other_cloud()}"
        )

    def _other_cloud(self) -> str:
        from localcloud.control import find_running_cloud

        if (here := self.where.cloud) is not None:
            return hint_of_other_clouds(self.wanted.stack or "", here.home.parent)
        if (cloud := find_running_cloud(cloud_home(None))) is None:
            return ""
        if cloud.endpoint in os.environ.get("CLIENT_HOST_OVERRIDES", ""):
            return ""  # that is where we looked
        return f"\nA local cloud runs in {cloud.home}: with `--local` you see its runs."

    def _suggest_run(self, named: str) -> str:
        """Suggests the run of this stack with the most similar name."""
        if not named:
            return ""
        others = look_for(self.where, WantedRuns(self.wanted.stack)).look(deeply=False)
        titles = dict.fromkeys(run.title if self.wanted.run else run.job for run in others)
        return f": {suggest_name(named, titles)}" if titles else ""


def run_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments that choose runs and a cloud."""

    @click.argument("stack", required=False)
    @click.argument("run", required=False, metavar="[JOB[/RUN]]")
    @stacks_option
    @click.option("--local", is_flag=True, help="Show runs of the local cloud, which `trainyard up --local` started.")
    @home_option
    @place_option("the runs are")
    @profile_option
    def with_selection(
        stack: str | None, run: str | None, stacks: Path, local: bool, home: Path | None, place: str | None,
        profile: str | None, **options: Any,
    ) -> None:  # fmt: skip
        cloud = running_cloud(home, _stack_name(stack) or "") if local or home else None
        file = None
        # On the local cloud the deployed copy counts: the file may have moved, may be gone, or may name another
        # platform.
        with suppress(click.UsageError) if cloud is not None else nullcontext():
            file = find_stack_file(stack, stacks) if stack is not None else None
        if cloud is not None and stack is not None:
            file = deployed_files(cloud.home).get(_stack_name(stack) or "", file)
        job, _, name = (run or "").partition("/")
        jobs = config_of(file).get(JOBS_KEY) if job and name else None
        # `pulumi up -c` writes an object into the file as JSON text.
        sweep = frozenset(swept_keys(parse_json(jobs.encode()) if isinstance(jobs, str) else jobs, job, name))
        wanted = WantedRuns(_stack_name(stack), job or None, name or None, sweep)
        where = where_of(file, cloud, place, profile)
        try:
            everywhere = cloud if not (stack or place) else None
            look = look_for(where, wanted) if everywhere is None else _look_everywhere(where, wanted, everywhere)
        except UnknownPlaceError as error:
            raise click.UsageError(str(error)) from None
        command(RunSelection(look, where, wanted, file), **options)

    with_selection.__name__, with_selection.__doc__ = command.__name__, command.__doc__
    return with_selection


def where_of(file: Path | None, cloud: Cloud | None, place: str | None, profile: str | None) -> Where:
    bucket = partial(_bucket_of_file, file) if file is not None else None
    folder = file.parent if file is not None else None
    seen = TrafficReader(cloud) if cloud is not None else None
    return Where(config_of(file), cloud, place, say_aside, profile, bucket, folder, seen)


def _look_everywhere(where: Where, wanted: WantedRuns, cloud: Cloud) -> SeveralLooks:
    """All runs of the local cloud. A platform that lists runs only for a stack is asked for each of its stacks."""
    looks, files = [], deployed_files(cloud.home)
    for platform in platforms_with(RunClients):
        try:
            looks.append(look_for(replace(where, config={PLATFORM_KEY: platform}), wanted))
        except UnknownPlaceError:
            for stack, file in files.items():
                own = where_of(file, cloud, None, where.profile)
                if platform_in(own.config) == platform:
                    looks.append(look_for(own, WantedRuns(stack)))
    return SeveralLooks(f"the local cloud in {cloud.home}", looks)


def config_of(file: Path | None) -> dict[str, Any]:
    """The configuration in the stack file, unchecked: runs can be shown while the file has errors."""
    if file is None:
        return {}
    data = read_source(file).data
    config = data.get("config") if isinstance(data, dict) else None
    if not isinstance(config, dict):
        raise click.ClickException(f"{file} has no `config:`; `trainyard check {file}` says more")
    return config


def _bucket_of_file(file: Path) -> str:
    """The stack's bucket. Empty if errors in the file hide its name."""
    from components.platform.files import TransferError
    from trainyard.files.sources import stack_bucket_name

    stack = load_file(file).stack
    try:
        return stack_bucket_name(file, stack) if stack is not None else ""
    except TransferError as error:
        raise click.ClickException(str(error)) from None


def _stack_name(stack: str | None) -> str | None:
    return stack_name(Path(stack)) if stack and is_file_name(stack) else stack
