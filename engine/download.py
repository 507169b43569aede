# SPDX-License-Identifier: Apache-2.0
"""Pulumi's own release archive, checked against the checksums published with it."""

import hashlib
import tarfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from engine.progress import Progress
from engine.versions import ENGINE_VERSION, EngineError, Machine

RELEASES = "https://github.com/pulumi/pulumi/releases/download"
# No answer within this is taken as "not reachable from here": building from source comes next.
ANSWER_SECONDS = 4.0
CHUNK = 1 << 20
_PROCESSORS = {"amd64": "x64", "arm64": "arm64"}


def download(folder: Path, machine: Machine, env: Mapping[str, str], progress: Progress) -> None:
    """Put the release's programs (`pulumi` and its language hosts) into `folder`.

    `TRAINYARD_PULUMI_RELEASES` names a mirror of the release pages; `off` does without.
    """
    releases = env.get("TRAINYARD_PULUMI_RELEASES", RELEASES).rstrip("/")
    if releases == "off":
        raise EngineError("TRAINYARD_PULUMI_RELEASES is off")
    name = f"pulumi-v{ENGINE_VERSION}-{machine.os}-{_PROCESSORS.get(machine.processor, machine.processor)}.tar.gz"
    page = f"{releases}/v{ENGINE_VERSION}"
    try:
        with _open(f"{page}/pulumi-{ENGINE_VERSION}-checksums.txt") as listing:
            expected = _checksum(listing.read().decode(), name)
        archive = folder / name
        with _open(f"{page}/{name}") as source:
            found = _save(source, archive, progress)
    except (OSError, ValueError) as problem:
        raise EngineError(f"{page}: {problem}") from problem
    if found != expected:
        raise EngineError(f"{page}/{name}: its SHA-256 is {found}, published is {expected}")
    _unpack(archive, folder)
    archive.unlink()


def _open(address: str) -> IO[bytes]:
    answer: IO[bytes] = urllib.request.urlopen(address, timeout=ANSWER_SECONDS)
    return answer


def _checksum(listing: str, name: str) -> str:
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].removeprefix("*") == name:
            return words[0].lower()
    raise ValueError(f"no checksum is published for {name}")


def _save(source: IO[bytes], archive: Path, progress: Progress) -> str:
    digest, size = hashlib.sha256(), 0
    with archive.open("wb") as target:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            target.write(chunk)
            size += len(chunk)
            progress.update(f"downloading Pulumi {ENGINE_VERSION}: {size >> 20} MiB")
    return digest.hexdigest()


def _unpack(archive: Path, folder: Path) -> None:
    """The archive holds `pulumi/<program>`; only plain files are taken, each by its last name."""
    try:
        with tarfile.open(archive) as content:
            for member in content:
                stream = content.extractfile(member) if member.isfile() else None
                if stream:
                    program = folder / Path(member.name).name
                    with program.open("wb") as target:
                        while chunk := stream.read(CHUNK):
                            target.write(chunk)
                    program.chmod(0o755)
    except tarfile.TarError as problem:
        raise EngineError(f"{archive.name} cannot be unpacked: {problem}") from problem
