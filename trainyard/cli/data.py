# SPDX-License-Identifier: Apache-2.0
"""`trainyard data`: moves files to and from a stack's bucket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

from catalog.platforms import platforms
from components.platform.client import Where
from components.platform.files import Store, StoredObject, StoreRequest, TransferError, store_opener
from components.platform.streams import local_path
from launcher.escaping import terminal_line
from schemas.load import load_file, stack_name
from schemas.model import Stack
from schemas.name_suggestions import count_noun, suggest_name
from trainyard.cli.out import print_json, say, say_aside
from trainyard.cli.planning import (
    end_with_findings,
    find_stack_file,
    home_option,
    profile_option,
    running_cloud,
    stacks_option,
)
from trainyard.cli.transfers import end_with, size_words, transfer_progress
from trainyard.files.sources import stack_bucket_name
from trainyard.files.workers import TransferReport

# The default folder of uploads. No run writes there.
DATA = "data"
_MOST_NEAR = 1000


@dataclass(frozen=True)
class StackBucket:
    """A stack with its bucket, opened for one purpose."""

    stack: Stack
    store: Store


def bucket_arguments(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The arguments that choose a stack's bucket, and the cloud that it is in."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @stacks_option
        @click.option("--local", is_flag=True, help="The bucket on the local cloud, which `trainyard up --local` made.")
        @home_option
        @click.option("--bucket", metavar="NAME", help="Another bucket than the stack's.")
        @profile_option
        @click.argument("stack")
        def with_bucket(
            stack: str, stacks: Path, local: bool, home: Path | None, bucket: str | None, profile: str | None,
            **options: Any,
        ) -> None:  # fmt: skip
            file = find_stack_file(stack, stacks)
            loaded = load_file(file, str(file))
            if loaded.stack is None:
                from schemas.judge import judge_file

                end_with_findings(judge_file(file, str(file)), "text")
            cloud = running_cloud(home, stack_name(file)) if local or home else None
            where = Where(loaded.source.data["config"], cloud, None, say_aside, profile)
            opener = store_opener(StoreRequest(purpose, where, loaded.stack))
            command(
                StackBucket(loaded.stack, opener.bucket(bucket or stack_bucket_name(file, loaded.stack))), **options
            )

        with_bucket.__name__, with_bucket.__doc__ = command.__name__, command.__doc__
        with_bucket.__click_params__ = [  # type: ignore[attr-defined]  # where click keeps them until it makes a command
            *getattr(command, "__click_params__", []),
            *with_bucket.__click_params__,  # type: ignore[attr-defined]
        ]
        return with_bucket

    return decorate


@click.group()
def data() -> None:
    """Move files to and from a stack's bucket.

    \b
    trainyard data put vision-prod ./images          to data/images/ in the bucket
    trainyard data list vision-prod data/
    trainyard data get vision-prod data/images --to ./copy
    trainyard runs outputs vision-prod               what runs left there

    A job reads what lies under data/images when its stack file says so:

    \b
    inputs: [{ mount: /data/images, prefix: data/images/ }]     as files of a folder (OCI)
    command: train.py --data ${bucket}/data/images              by the bucket's address

    Files are moved in parallel parts and verified by checksum. A file that is there already is not moved again. After
    an interruption, the same command continues. Credentials are those of the cloud's own clients, or those that
    `trainyard cloud env` sets.
    """


@data.command("put")
@bucket_arguments("put")
@click.argument("source", type=click.Path(path_type=Path, exists=True))
@click.argument("prefix", required=False)
@click.option("--overwrite", is_flag=True, help="Replace objects that have other content.")
def put_data_command(opened: StackBucket, source: Path, prefix: str | None, overwrite: bool) -> None:
    """Put the file or folder SOURCE below PREFIX in the bucket: data/ for a file, data/<its name>/ for a folder.

    Hidden files are put too. Links are reported, not followed. Objects with other content are replaced only with
    --overwrite. The folders of the stack's jobs, where runs keep results and checkpoints, also need --overwrite.
    """
    from trainyard.files.put import Put
    from trainyard.files.sources import source_files

    if prefix is not None:
        below = _bucket_folder(prefix)
    else:
        below = DATA if source.is_file() else "/".join(filter(None, (DATA, source.resolve().name)))
    report = TransferReport()
    sending = Put(opened.store, below, report, overwrite, partial(_why_reserved, opened.stack, overwrite))
    with transfer_progress(report, "Putting"):
        sending.send(source_files(source, report), alone=source.is_file())
    place = f"to {opened.store.address}/{below}".rstrip("/")
    end_with(report, "put", place, input_hint(opened, below) if below else "")


def input_hint(opened: StackBucket, below: str) -> str:
    """How a job reads the files: not every platform mounts buckets."""
    if opened.stack and "inputs" in platforms()[opened.stack.platform].lacks:
        return f"A job reads them by their address: `${{bucket}}/{below}` in its command."
    mounted = f"{{ mount: /data/{Path(below).name}, prefix: {below}/ }}"
    return f"A job reads them with `inputs: [{mounted}]` in its stack file."


def _bucket_folder(prefix: str) -> str:
    """A folder in the bucket, without slashes around it; empty for the whole bucket."""
    folder = prefix.strip("/")
    why = local_path(folder)[1] if folder else ""
    if why:
        raise click.UsageError(f"`{prefix}` cannot be a folder in the bucket: {why}")
    return folder


def _why_reserved(stack: Stack, overwrite: bool, name: str) -> str:
    """Why nothing may be put under a name: runs write below the names of their jobs, former names (`was`) included."""
    first, slash, _ = name.partition("/")
    jobs = {known for job, spec in stack.jobs.items() for known in (job, *spec.was.names)}
    if overwrite or not slash or first not in jobs:
        return ""
    return f"the runs of the job `{first}` keep their files below `{first}/`; choose another PREFIX, or say --overwrite"


@data.command("get")
@bucket_arguments("get")
@click.argument("name")
@click.option("--to", type=click.Path(path_type=Path), help="The folder to fetch into.", metavar="DIR")
@click.option("--overwrite", is_flag=True, help="Replace files that have other content.")
def get_data_command(opened: StackBucket, name: str, to: Path | None, overwrite: bool) -> None:
    """Fetch the object NAME, or all below the folder NAME, into DIR.

    DIR is by default this folder for one object, and a folder of NAME's last word for a folder. Nothing is written
    outside of DIR, and no link in it is followed. A file with other content is replaced only with --overwrite.
    """
    from trainyard.files.get import Get, WantedObject
    from trainyard.files.targets import open_target

    folder = _bucket_folder(name)
    item = None if name.endswith("/") or not folder else next(iter(opened.store.list(folder)), None)
    if item is not None and item.name != folder:
        item = None
    report = TransferReport()
    target = to or Path("." if item else Path(folder).name or "bucket")
    with open_target(target) as place, transfer_progress(report, "Fetching"):
        fetching = Get(opened.store, place, report, overwrite)
        if item is not None:
            fetching.fetch([WantedObject(item, folder.rpartition("/")[2])])
        else:
            below = f"{folder}/" if folder else ""
            objects = _objects_below(opened.store, below)
            fetching.fetch(WantedObject(item, item.name[len(below) :]) for item in objects)
    end_with(report, "fetched", f"into {target}")


def _objects_below(store: Store, below: str) -> Iterator[StoredObject]:
    """All objects below a prefix. Raises TransferError if there is none, with similar names of the folder above."""
    found = False
    for item in store.list(below):
        found = True
        yield item
    if found:
        return
    parent, _, name = below.rstrip("/").rpartition("/")
    above = f"{parent}/" if parent else ""
    nearest = islice(store.list(above), _MOST_NEAR)
    names = list(dict.fromkeys(item.name[len(above) :].partition("/")[0] for item in nearest))
    hint = f": {suggest_name(name, names[:20])}" if names else "; `trainyard data list STACK` shows what is there"
    raise TransferError(f"nothing is called `{below.rstrip('/')}` in {store.address}{hint}")


@data.command("list")
@bucket_arguments("list")
@click.argument("prefix", default="")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)
def list_data_command(opened: StackBucket, prefix: str, form: str) -> None:
    """List the objects whose names begin with PREFIX: size, time and name."""
    if form == "json":
        rows = [object_json(item) for item in opened.store.list(prefix)]
        print_json(json.dumps({"bucket": opened.store.address, "objects": rows}, indent=2))
        return
    count = total = 0
    for item in opened.store.list(prefix):
        say(object_line(item, item.name))
        count, total = count + 1, total + item.size
    say(f"{count_noun(count, 'object')}, {size_words(total)}, in {opened.store.address}/{prefix}".rstrip("/"))


def object_json(item: StoredObject) -> dict[str, Any]:
    return {"name": item.name, "size": item.size, "modified": item.modified, "md5": item.checksum or None}


def object_line(item: StoredObject, name: str) -> str:
    return f"{size_words(item.size):>10}  {item.modified.replace('T', ' ').rstrip('Z'):19}  {terminal_line(name)}"
