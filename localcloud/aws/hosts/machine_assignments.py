# SPDX-License-Identifier: Apache-2.0
"""The hosts' assignment for an instance: one node that is a whole machine, in the network of its VPC."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import shutil
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import packaging

from catalog.aws import accelerator_of_machine, aws_machine
from catalog.environments import EnvironmentFacts
from localcloud.aws.hosts import machine_network
from localcloud.aws.hosts.machine import stand_in
from localcloud.aws.hosts.machine.channels import GIVEN, PACKAGE, PROGRAMS, START
from localcloud.aws.machines import Machine, SubnetFacts
from localcloud.environments import cache
from localcloud.environments.find import LAYER, Environment, facts_here, find_environment, requirements_of
from localcloud.hosts import images
from localcloud.hosts.assignment import (
    Assignment,
    CannotStartError,
    Group,
    Interface,
    NetworkReach,
    NodeWork,
    Outline,
    Subnet,
    WholeMachine,
    hardware_address,
)
from localcloud.hosts.images import Shown

# EC2 takes 16 KiB of user data. Compressed text may expand to at most this size.
_LONGEST = 1 << 20
_CONFIG, _SCRIPT = b"#cloud-config", b"#!"
# The keys of cloud-config that this stand-in supports. `packages` only gets a note.
_SUPPORTED = {"write_files", "bootcmd", "runcmd", "packages"}
_PACKED = ("gz", "gzip", "gz+base64", "gzip+base64", "gz+b64", "gzip+b64")
_ENCODED = ("b64", "base64", *(name for name in _PACKED if "+" in name))
COMMANDS = "commands"
_BOOT = "boot.json"
_GIVEN = "given"
# The folders on a machine's disk, and those that are emptied at each boot.
KEPT_FOLDERS = ("/etc", "/opt", "/root", "/var", "/home", "/srv", "/data", "/workspace", "/mnt", "/scratch")
EMPTIED_FOLDERS = ("/run", images.TEMPORARY)
_FILES = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nsshd:x:100:\nnogroup:x:65534:\n",
    "shadow": "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n",
    "ssh/sshd_config": "UsePAM no\nSubsystem sftp internal-sftp\n",
    "nsswitch.conf": images.FILES["nsswitch.conf"],
    "resolv.conf": images.FILES["resolv.conf"],
}
_PACKAGING = Path(packaging.__file__).resolve().parent
Reach = Callable[[], NetworkReach | None]
Lines = Callable[[Sequence[bytes]], None]


def machine_environments() -> list[tuple[Environment, str, EnvironmentFacts]]:
    """The local environments on this machine, also those with added packages: each with the digest of these packages,
    or "", and with its facts."""
    rows = []
    for facts in facts_here().values():
        base = find_environment(facts.name)
        if not isinstance(base, Environment):
            continue
        rows.append((base, "", facts))
        for folder in sorted(cache.environments_cache().glob(f"{facts.name}{LAYER}*")):
            digest = folder.name.removeprefix(f"{facts.name}{LAYER}").partition("-")[0]
            layer = find_environment(f"{facts.name}{LAYER}{digest}")
            if isinstance(layer, Environment):
                rows.append((layer, digest, facts))
    return rows


def environment_row(environment: Environment, packages: str, facts: EnvironmentFacts) -> dict[str, Any]:
    """An environment as a row for the stand-in for docker, which chooses from these rows."""
    variables = {"TRAINYARD_ENVIRONMENT": environment.name.partition(LAYER)[0], **environment.variables}
    return {
        "name": environment.name, "path": environment.path, "variables": variables, "packages": packages,
        "requirements": requirements_of(packages) if packages else (),
        "serves": facts.serves, "offers": sorted(facts.offers), "provides": dict(facts.provides),
    }  # fmt: skip


def stood_for_facts(instance_type: str) -> dict[str, Any]:
    """What the stand-ins for programs of an instance show: accelerators that its type has, and this machine lacks."""
    facts: dict[str, Any] = {
        "words": f"a stand-in for a machine of the type {instance_type}", "instead": "", "runtimes": ["runc"],
        "shows": (),
    }  # fmt: skip
    machine, accelerator = aws_machine(instance_type), accelerator_of_machine(instance_type)
    if machine is None or accelerator is None or not machine.accelerators:
        return facts
    return {
        "words": f"{facts['words']}: it has no {accelerator.words}", "model": machine.model,
        "instead": f", and gloo for {accelerator.backends[0].upper()}", "count": machine.accelerators,
        "runtimes": ["runc", *filter(None, [accelerator.runtime])], "shows": accelerator.shows,
        "listed": accelerator.listed,
    }  # fmt: skip


def shown_files() -> list[Shown]:
    """The files of all these environments. Every machine sees them."""
    pairs = (
        pair
        for each, _, _ in machine_environments()
        for pair in images.shown_programs(each.layout, dict(each.variables))
    )
    return list(dict.fromkeys(pairs))


def boot_plan(user_data: bytes) -> Mapping[str, Any]:
    """The steps of a machine's boot, from its user data. `notes` name the parts that are not supported."""
    empty: dict[str, Any] = {"write_files": [], "bootcmd": [], "runcmd": [], "notes": []}
    try:
        content = _unpack_user_data(user_data) if user_data[:2] == b"\x1f\x8b" else user_data
    except (OSError, EOFError, zlib.error):
        return {**empty, "notes": ["the user data is not valid gzip"]}
    if not content.strip():
        return empty
    if content.startswith(_SCRIPT):
        file = {"path": "/var/lib/cloud/instance/script", "permissions": 0o700, "append": False}
        file["content"] = base64.b64encode(content).decode()
        return {**empty, "write_files": [file], "runcmd": [["/var/lib/cloud/instance/script"]]}
    if not content.startswith(_CONFIG):
        return {**empty, "notes": ["the user data is neither cloud-config nor a script, and is ignored"]}
    return {**empty, **_parse_cloud_config(content)}


def _parse_cloud_config(content: bytes) -> Mapping[str, Any]:
    import yaml

    try:
        # Aliases can make a short text expand without limit.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, Loader=yaml.CSafeLoader)):
            return {"notes": ["the user data has YAML aliases (`*name`), and is ignored"]}
        config = yaml.load(content, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return {"notes": [f"the user data is not YAML: {' '.join(str(error).split())[:300]}"]}
    if not isinstance(config, dict):
        return {"notes": ["the user data is cloud-config without keys"]}
    notes = [f"{key}: not supported here" for key in sorted(map(str, config)) if key not in _SUPPORTED]
    if packages := config.get("packages"):
        notes.append(f"packages, not installed: {packages}")
    plan: dict[str, Any] = {"notes": notes, "write_files": []}
    for key in ("bootcmd", "runcmd"):
        plan[key] = [
            [str(word) for word in item] if isinstance(item, list) and item else str(item)
            for item in _list_or_empty(config.get(key))
        ]
    for number, item in enumerate(_list_or_empty(config.get("write_files"))):
        try:
            plan["write_files"].append(_cloud_config_file(item))
        except (KeyError, TypeError, ValueError, OSError, zlib.error) as error:
            notes.append(f"write_files, number {number + 1}: {error!r}")
    return plan


def _list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _cloud_config_file(item: Mapping[str, Any]) -> Mapping[str, Any]:
    encoding, text = str(item.get("encoding") or ""), item.get("content") or ""
    content = text if isinstance(text, bytes) else str(text).encode()
    if encoding in _ENCODED:
        content = base64.b64decode(content)
    if encoding in _PACKED:
        content = _unpack_user_data(content)
    permissions = item.get("permissions")
    number = int(permissions, 8) if isinstance(permissions, str) else permissions
    return {
        "path": str(item["path"]), "append": bool(item.get("append")), "permissions": int(number or 0) & 0o7777,
        "content": base64.b64encode(content).decode(),
    }  # fmt: skip


def _unpack_user_data(content: bytes) -> bytes:
    with gzip.open(io.BytesIO(content)) as opened:
        return opened.read(_LONGEST)


async def build_machine_assignment(
    machine: Machine, folder: Path, facts: SubnetFacts, reach: Reach, lines: Lines
) -> Assignment:
    if not machine.interfaces:
        raise CannotStartError("The instance has no network interface")
    interface = machine.interfaces[0]
    await asyncio.to_thread(_write_boot_files, machine, folder)
    router = machine_network.router_address(facts)
    subnet = Subnet(
        facts.subnet, facts.network, router, hardware_address(router), int(facts.subnet_block.partition("/")[2])
    )
    return Assignment(
        id=machine.id,
        name=machine.tags.get("node") or machine.id,
        folder=folder,
        outline=Outline((Group("", 1, 1),), 0),
        works=[await asyncio.to_thread(_machine_work, machine, folder)],
        code=None,
        mounts=(),
        subnet=subnet,
        interfaces=[
            Interface(interface.id, interface.address, interface.mac or hardware_address(interface.address), reach)
        ],
        lines=lambda group, rank: lines,
        keeps_disks=True,
    )


def command_file(folder: Path, command: str, kind: str = "json") -> Path:
    return folder / _GIVEN / COMMANDS / f"{command}.{kind}"


def _write_boot_files(machine: Machine, folder: Path) -> None:
    """Writes the files that the machine can only read: its boot plan, and the folder for commands."""
    given = folder / _GIVEN
    shutil.rmtree(given, ignore_errors=True)
    (given / COMMANDS).mkdir(parents=True)
    available = machine_environments()
    facts: Mapping[str, Any] = {
        "plan": boot_plan(machine.user_data),
        "efa": sum(each.kind.startswith("efa") for each in machine.interfaces),
        "environments": [environment_row(*each) for each in available],
        "stands_for": stood_for_facts(machine.instance_type),
        "path": str(Path(sys.executable).parent),
        "environment": {},
    }
    (given / _BOOT).write_text(json.dumps(facts))
    for path in (given, given / COMMANDS, given / _BOOT):
        path.chmod(0o755 if path.is_dir() else 0o644)
    # Removes the results of earlier boots.
    for path in (*folder.glob("node-*.result"), folder / "evidence.json"):
        path.unlink(missing_ok=True)


def _machine_work(machine: Machine, folder: Path) -> NodeWork:
    services, storage = (
        f"http://{each}:443" for each in (machine_network.SERVICES_ADDRESS, machine_network.STORAGE_ADDRESS)
    )
    variables = {
        "AWS_ENDPOINT_URL": services,
        "AWS_ENDPOINT_URL_S3": storage,
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{machine_network.METADATA_ADDRESS}:443{machine.metadata}",
        "AWS_REGION": machine.region,
    }
    here = Path(__file__).resolve().parent
    package = f"{PROGRAMS}/localcloud/aws/hosts/machine"
    shown = [(str(here / "machine"), package)]
    # The stand-in for docker chooses environments with the catalog, which parses requirements with `packaging`.
    shown += [(str(place), f"{PROGRAMS}/{place.name}") for place in (here.parents[2] / "catalog", _PACKAGING)]
    scripts = folder / "bin"
    scripts.mkdir(exist_ok=True)
    for name in (*stand_in.ROWS, *stood_for_facts(machine.instance_type)["shows"][:1]):
        script = scripts / name
        words = (sys.executable, "-I", "-S", "-c", f'"{START}"', PROGRAMS, f"{PACKAGE}.stand_in", name)
        script.write_text(f'#!/bin/sh\n# A stand-in of trainyard\'s local cloud.\nexec {" ".join(words)} "$@"\n')
        script.chmod(0o755)
        system = [Path(place, name) for place in ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")]
        shown += [(str(script), str(path.resolve())) for path in system if path.exists()]
    scripts.chmod(0o755)
    whole = WholeMachine(
        KEPT_FOLDERS,
        EMPTIED_FOLDERS,
        {**_FILES, "environment": "".join(f"{name}={value}\n" for name, value in variables.items())},
        (*shown, (str(scripts), f"{PROGRAMS}/bin"), *shown_files()),
        GIVEN,
    )
    command = (sys.executable, "-I", "-S", "-c", START, PROGRAMS, f"{PACKAGE}.boot")
    return NodeWork(command, (), "", lambda endpoints, given: {}, "", machine.image, 0, 0, whole)
