# SPDX-License-Identifier: Apache-2.0
"""Downloads Pulumi's release archive over TLS, and verifies it against the published checksum or the user's own."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from trainyard.engine.progress import Progress
from trainyard.engine.versions import ENGINE_VERSION, EngineError, Machine

RELEASES = "https://github.com/pulumi/pulumi/releases/download"
MIRROR_VARIABLE = "TRAINYARD_PULUMI_RELEASES"
CHECKSUM_VARIABLE = "TRAINYARD_PULUMI_SHA256"
# Timeout of the first answer. After it the release server counts as unreachable, and the engine is built from source.
ANSWER_SECONDS = 4.0
CHUNK = 1 << 20
_LONGEST_LISTING = 1 << 20
_PROCESSORS = {"amd64": "x64", "arm64": "arm64"}
_SECURE = "https"
# Without TLS, somebody between here and the server could change both the archive and its checksum.
_PLAIN = ("http", "file")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class MirrorError(EngineError):
    """The user's settings of a mirror are invalid. No other source is tried instead."""


def download_engine(folder: Path, machine: Machine, env: Mapping[str, str], progress: Progress) -> None:
    """Puts the release's programs (`pulumi` and its language hosts) into `folder`.

    `TRAINYARD_PULUMI_RELEASES` names a mirror of the release pages. `off` turns the download off.
    """
    from http.client import HTTPException  # as in _open

    releases = (env.get(MIRROR_VARIABLE) or RELEASES).rstrip("/")
    if releases == "off":
        raise EngineError(f"{MIRROR_VARIABLE} is off")
    given = env.get(CHECKSUM_VARIABLE, "").strip()
    if given and not _SHA256.fullmatch(given):
        raise MirrorError(f"{CHECKSUM_VARIABLE} is {given!a}: give the archive's SHA-256, 64 hexadecimal digits")
    expected = given.lower()
    schemes = _allowed_schemes(releases, expected)
    name = f"pulumi-v{ENGINE_VERSION}-{machine.os}-{_PROCESSORS.get(machine.processor, machine.processor)}.tar.gz"
    page = f"{releases}/v{ENGINE_VERSION}"
    archive = folder / name
    try:
        if not expected:
            with _open_address(f"{page}/pulumi-{ENGINE_VERSION}-checksums.txt", schemes) as listing:
                expected = _published_checksum(listing.read(_LONGEST_LISTING).decode(), name)
        with _open_address(f"{page}/{name}", schemes) as source:
            checksum = _save_archive(source, archive, progress)
    except (OSError, ValueError, HTTPException) as problem:
        raise EngineError(f"{page}: {problem}") from problem
    if checksum != expected:
        raise EngineError(f"{page}/{name}: its SHA-256 is {checksum}, expected is {expected}")
    _unpack_programs(archive, folder)
    archive.unlink()


def _allowed_schemes(releases: str, checksum: str) -> tuple[str, ...]:
    """The URL schemes allowed, also for redirections: only TLS, unless the user gives the checksum."""
    scheme = releases.partition("://")[0].lower()
    if scheme == _SECURE and not checksum:
        return (_SECURE,)
    if scheme not in (_SECURE, *_PLAIN):
        raise MirrorError(
            f"{MIRROR_VARIABLE} is {releases!a}: write https://…, or `off` to build the engine from source"
        )
    if not checksum:
        raise MirrorError(
            f"{MIRROR_VARIABLE} is {releases}: without TLS, both archive and checksum could be changed on the way.\n"
            f"Use https://, or give the archive's SHA-256 in {CHECKSUM_VARIABLE}, or write `off`."
        )
    return (_SECURE, *_PLAIN) if scheme == "file" else (_SECURE, "http")


def _open_address(address: str, schemes: tuple[str, ...]) -> IO[bytes]:
    """Opens the address. Redirections must keep to these schemes."""
    # Imported here because it is slow, and most commands only need to know where the engine is.
    from urllib import request
    from urllib.error import URLError

    class Redirections(request.HTTPRedirectHandler):
        def redirect_request(self, *arguments: Any, **more: Any) -> Any:
            made = super().redirect_request(*arguments, **more)
            if made is not None and made.type not in schemes:
                raise URLError(f"redirected to {made.full_url}, which is not {' or '.join(schemes)}")
            return made

    opener = request.build_opener(Redirections())
    answer: IO[bytes] = opener.open(address, timeout=ANSWER_SECONDS)
    return answer


def _published_checksum(listing: str, name: str) -> str:
    for line in listing.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].removeprefix("*") == name:
            return words[0].lower()
    raise ValueError(f"no checksum is published for {name}")


def _save_archive(source: IO[bytes], archive: Path, progress: Progress) -> str:
    digest, size = hashlib.sha256(), 0
    with archive.open("xb") as target:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            target.write(chunk)
            size += len(chunk)
            progress.update(f"downloading Pulumi {ENGINE_VERSION}: {size >> 20} MiB")
    return digest.hexdigest()


def _unpack_programs(archive: Path, folder: Path) -> None:
    """Unpacks the programs. The archive has them as `pulumi/<program>`; only regular files are taken, without the
    folder."""
    try:
        with tarfile.open(archive) as content:
            for member in content:
                stream = content.extractfile(member) if member.isfile() else None
                if stream:
                    program = folder / os.path.basename(member.name)
                    with program.open("xb") as target:
                        while chunk := stream.read(CHUNK):
                            target.write(chunk)
                    program.chmod(0o755)
    except (tarfile.TarError, FileExistsError, IsADirectoryError, EOFError) as problem:
        raise EngineError(f"{archive.name} cannot be unpacked: {problem}") from problem
