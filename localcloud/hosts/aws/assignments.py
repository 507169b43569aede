# SPDX-License-Identifier: Apache-2.0
"""An instance as an assignment: one node that is a whole machine, in the network of its VPC."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import packaging

from localcloud.aws.machines import Machine, NetworkAround
from localcloud.hosts import inside
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
)
from localcloud.hosts.aws import environments, places, user_data
from localcloud.hosts.aws.machine import stand_in
from localcloud.hosts.aws.machine.given import GIVEN, PACKAGE, PROGRAMS, START

COMMANDS = "commands"
_BOOT = "boot.json"
_GIVEN = "given"
# The folders of a machine's disk, and those that are empty at each boot.
KEPT = ("/etc", "/opt", "/root", "/var", "/home", "/srv", "/data", "/workspace", "/mnt", "/scratch")
FRESH = ("/run", inside.TEMPORARY)
_FILES = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\nsshd:x:100:\nnogroup:x:65534:\n",
    "shadow": "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n",
    "ssh/sshd_config": "UsePAM no\nSubsystem sftp internal-sftp\n",
    "nsswitch.conf": inside.FILES["nsswitch.conf"],
    "resolv.conf": inside.FILES["resolv.conf"],
}
Reach = Callable[[], NetworkReach | None]
Lines = Callable[[Sequence[bytes]], None]


async def assignment_of(
    machine: Machine, folder: Path, around: NetworkAround, reach: Reach, lines: Lines
) -> Assignment:
    if not machine.interfaces:
        raise CannotStartError("The instance has no network interface")
    interface = machine.interfaces[0]
    await asyncio.to_thread(_write_boot, machine, folder)
    router = places.router(around)
    subnet = Subnet(around.subnet, around.network, router, hardware(router), _prefix_length(around))
    return Assignment(
        id=machine.id,
        name=machine.tags.get("node") or machine.id,
        folder=folder,
        outline=Outline((Group("", 1, 1),), 0),
        works=[await asyncio.to_thread(_work, machine, folder)],
        code=None,
        mounts=(),
        subnet=subnet,
        interfaces=[Interface(interface.id, interface.address, interface.mac or hardware(interface.address), reach)],
        lines=lambda group, rank: lines,
        upkeep=_nothing,
        keeps_disks=True,
    )


def command_file(folder: Path, command: str, kind: str = "json") -> Path:
    return folder / _GIVEN / COMMANDS / f"{command}.{kind}"


def hardware(text: str) -> str:
    """A hardware address for an address, always the same."""
    return "02:" + ":".join(f"{byte:02x}" for byte in hashlib.sha256(text.encode()).digest()[:5])


async def _nothing() -> None:
    """An instance's credentials are renewed by its metadata service."""


def _prefix_length(around: NetworkAround) -> int:
    return int(around.subnet_block.partition("/")[2])


def _write_boot(machine: Machine, folder: Path) -> None:
    """What the machine is given, read-only: how it boots, and a place for commands."""
    given = folder / _GIVEN
    shutil.rmtree(given, ignore_errors=True)
    (given / COMMANDS).mkdir(parents=True)
    found = environments.environments()
    facts: Mapping[str, Any] = {
        "plan": user_data.boot_plan(machine.user_data),
        "efa": sum(each.kind.startswith("efa") for each in machine.interfaces),
        "environments": [environments.as_row(*each) for each in found],
        "path": str(Path(sys.executable).parent),
        "environment": {},
    }
    (given / _BOOT).write_text(json.dumps(facts))
    for path in (given, given / COMMANDS, given / _BOOT):
        path.chmod(0o755 if path.is_dir() else 0o644)
    # Results of an earlier boot are not this one's.
    for path in (*folder.glob("node-*.result"), folder / "evidence.json"):
        path.unlink(missing_ok=True)


def _work(machine: Machine, folder: Path) -> NodeWork:
    whole = WholeMachine(KEPT, FRESH, _files(machine), (*_programs(folder), *environments.shown_files()), GIVEN)
    command = (sys.executable, "-I", "-S", "-c", START, PROGRAMS, f"{PACKAGE}.boot")
    return NodeWork(command, (), "", lambda endpoints, given: {}, "", machine.image, 0, 0, whole)


def _files(machine: Machine) -> Mapping[str, str]:
    """Settings of a new disk. Programs of AWS read in the environment where AWS is: so do services of systemd."""
    services, storage = (f"http://{each}:443" for each in (places.SERVICES_ADDRESS, places.STORAGE_ADDRESS))
    variables = {
        "AWS_ENDPOINT_URL": services,
        "AWS_ENDPOINT_URL_S3": storage,
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{places.METADATA_ADDRESS}:443{machine.metadata}",
        "AWS_REGION": machine.region,
    }
    return {**_FILES, "environment": "".join(f"{name}={value}\n" for name, value in variables.items())}


_PACKAGING = Path(packaging.__file__).resolve().parent


def _programs(folder: Path) -> list[tuple[str, str]]:
    """The programs inside: ours, and a small script for each stand-in. Those of the system's folders are covered."""
    here = Path(__file__).resolve().parent
    package = f"{PROGRAMS}/localcloud/hosts/aws/machine"
    shown = [(str(here / "machine"), package)]
    # Its stand-in for docker chooses environments as all others do: by the catalog, which reads requirements by this.
    shown += [(str(place), f"{PROGRAMS}/{place.name}") for place in (here.parents[2] / "catalog", _PACKAGING)]
    scripts = folder / "bin"
    scripts.mkdir(exist_ok=True)
    for name in stand_in.ROWS:
        script = scripts / name
        words = (sys.executable, "-I", "-S", "-c", f'"{START}"', PROGRAMS, f"{PACKAGE}.stand_in", name)
        script.write_text(f'#!/bin/sh\n# A stand-in of trainyard\'s local cloud.\nexec {" ".join(words)} "$@"\n')
        script.chmod(0o755)
        system = [Path(place, name) for place in ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")]
        shown += [(str(script), str(path.resolve())) for path in system if path.exists()]
    scripts.chmod(0o755)
    return [*shown, (str(scripts), f"{PROGRAMS}/bin")]
