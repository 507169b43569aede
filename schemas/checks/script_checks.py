# SPDX-License-Identifier: Apache-2.0
"""Checks of training scripts: whether Python can read them, and whether what they call exists where they run. The
meaning of calls is in catalog/scripts.toml."""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from catalog.tables import table
from schemas.checks.command_checks import job_commands
from schemas.facts import Facts
from schemas.findings import Path, Wrong, at, rule
from schemas.model import Job, Stack
from schemas.scripts import UNKNOWN, Call, Scripts

# The limit for one job.
_MOST_NAMED = 10
_ADDRESS = re.compile(r"(https?|ftp|hf)://", re.IGNORECASE)


@rule("TY8000", "a script that Python cannot read")
def broken_script(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name in stack.jobs:
        for script in facts.scripts.get(name, Scripts()).broken:
            text = f" in `{script.text}`" if script.text else ""
            version = f"{sys.version_info[0]}.{sys.version_info[1]}"
            message = f"{script.file}:{script.line}: Python {version} cannot read it: {script.why}{text}"
            yield Wrong(at("jobs", name, "code"), message, "correct the script: every run would end at once")


@rule("TY8001", "a script that downloads, on nodes without a way to the internet", severity="warning")
def downloads_without_internet(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if stack.makes("network") and not stack.network.nat:
        out = "or set `nat: true` under `trainyard:network` (the local cloud has no internet even so)"
        for path, message, download in _downloads_of_jobs(stack, facts):
            yield Wrong(
                path, f"{message}, but the nodes cannot reach the internet", f"{_how_to_bring(download)}; {out}"
            )


@rule("TY8002", "a script that downloads, which the local cloud cannot", severity="note")
def downloads_on_local_cloud(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    if not stack.makes("network") or stack.network.nat:
        for path, message, download in _downloads_of_jobs(stack, facts):
            yield Wrong(path, f"{message}: `up --local` and `rehearse` have no internet", _how_to_bring(download))


def _how_to_bring(download: Mapping[str, Any]) -> str:
    if download.get("first") == "program":
        return "list packages under `requirements`; bring data with `trainyard data put` (docs/data.md)"
    copy = f", or name the folder with a copy in `env: {{ {download['kept_in']}: … }}`" if "kept_in" in download else ""
    return f"bring it with `trainyard data put`, and read it by `inputs` or `${{bucket}}` (docs/data.md){copy}"


def _downloads_of_jobs(stack: Stack, facts: Facts) -> Iterator[tuple[Path, str, Mapping[str, Any]]]:
    """The calls and commands that download: the place, the message, and the row of the call."""
    rows = table("scripts")["downloads"]
    for name, job in stack.jobs.items():
        folder = facts.folders.get(job.code.folder or "") if job.code else None
        files = folder.files if folder else frozenset()
        calls = facts.scripts.get(name, Scripts()).calls
        found = {
            (call.file, call.name): (call, download)
            for call in calls
            for download in rows
            if _is_download(call, download, files)
        }
        for call, download in list(found.values())[:_MOST_NAMED]:
            called = call.name.removeprefix(".")
            message = f"{call.file}:{call.line} calls `{called}`, which downloads {download['what']}"
            yield at("jobs", name, "code"), message, download
        for where, command in job_commands(name, job):
            if program := _downloading_program(command):
                yield where, f"`{program}` downloads", {"first": "program"}


def _is_download(call: Call, download: Mapping[str, Any], files: Iterable[str]) -> bool:
    if not call_matches(call, download["calls"]):
        return False
    if any(str(call.named.get(key, UNKNOWN)) != str(value) for key, value in download.get("only", {}).items()):
        return False
    if any(str(call.named.get(key, UNKNOWN)) == str(value) for key, value in download.get("unless", {}).items()):
        return False
    first = call.positional[0] if call.positional else next(iter(call.named.values()), UNKNOWN)
    match download.get("first"):
        case "address":
            return isinstance(first, str) and _is_on_internet(first)
        case "hub":
            is_path = isinstance(first, str) and (
                first[:1] in "./~" or any(file.startswith(f"{first}/") for file in files)
            )
            return isinstance(first, str) and not is_path and first not in download.get("local", ())
        case "program":
            words = first if isinstance(first, tuple) else (first,)
            # What only the script knows is usually `sys.executable`.
            return bool(_downloading_program(" ".join(word if isinstance(word, str) else "python" for word in words)))
    return True


def call_matches(call: Call, patterns: Iterable[str]) -> bool:
    return _name_matches(call.name, tuple(patterns))


# Jobs share their scripts: 200 of one script ask this 400,000 times.
@lru_cache(maxsize=65536)
def _name_matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_on_internet(text: str) -> bool:
    if not _ADDRESS.match(text):
        return False
    try:
        host = urlsplit(text).hostname or ""
    except ValueError:
        # `http://[` of an f-string: the rest is an IPv6 address, which downloads do not have.
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        # The rest of an f-string may have the host. A name without a dot is one of the network's own.
        return "." in host or not host


def _downloading_program(command: str) -> str:
    """The program of a command line that downloads; empty if there is none."""
    parts = (part.strip(" \"'") for part in re.split(r"&&|\|\||[;|]|\s-c\s", command))
    programs = table("scripts")["programs"]["downloads"]
    return next((program for part in parts for program in programs if f"{part} ".startswith(f"{program} ")), "")


@rule("TY4000", "a library whose ports an option opens", severity="warning")
def closed_ports(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for option, choice in framework.options.items():
            if job.options.get(option, choice.default):
                continue
            imported = (item for item in facts.scripts.get(name, Scripts()).imports if item.module in choice.imports)
            if item := next(imported, None):
                place = f"{item.file}:{item.line}"
                message = f"{place} imports `{item.module}`, whose own connections `{option}` has to open"
                yield Wrong(at("jobs", name), message, f"add `options: {{ {option}: true }}`; otherwise training hangs")


@rule("TY4001", "checkpoints in a folder of one node", severity="warning")
def storage_of_one_node(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        calls = facts.scripts.get(name, Scripts()).calls
        for store in table("scripts")["shared_storage"]:
            several = sum(role.replicas for role in job.roles.values()) > 1
            if (
                framework.name != store["framework"]
                or not several
                or any(store["instead"] in call.named for call in calls)
            ):
                continue
            configured = [
                call for call in calls if call_matches(call, store["calls"]) and store["argument"] in call.named
            ]
            places = [call for call in configured if _is_folder_of_node(call.named[store["argument"]], job)]
            makes = [] if configured else [call for call in calls if call_matches(call, store["checkpoints"])]
            for call in (places or makes)[:1]:
                message = (
                    f"{call.file}:{call.line} keeps checkpoints in a folder of each node; all nodes need the same one"
                )
                remedy = f"give `{store['argument']}` an address that all nodes reach, or save below $TRAINYARD_OUTPUT"
                yield Wrong(at("jobs", name, "code"), message, f"{remedy} (docs/frameworks.md)")


def _is_folder_of_node(folder: Any, job: Job) -> bool:
    """Whether a place is certainly a node's own folder: neither an address nor a mount."""
    if not isinstance(folder, str) or "://" in folder:
        return False
    return not any(folder.startswith(item.mount) for item in job.inputs)
