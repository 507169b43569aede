# SPDX-License-Identifier: Apache-2.0
"""A local server for releases of the engine, as Pulumi's. Tests download from it, let it withhold files, and kill
downloads."""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import http.server
import io
import ipaddress
import ssl
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.serving import serving
from trainyard.engine.versions import ENGINE_VERSION, Machine

CHECKOUT = Path(__file__).parents[2]
PROGRAMS = ("pulumi", "pulumi-language-python")


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves a folder. Paths below `/away/` are redirected to another server."""

    away = ""

    def do_GET(self) -> None:
        if not self.path.startswith("/away/"):
            super().do_GET()
            return
        self.send_response(302)
        self.send_header("Location", f"{self.away}{self.path.removeprefix('/away')}")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextlib.contextmanager
def served(pages: Path, context: ssl.SSLContext | None = None, away: str = "") -> Iterator[str]:
    handler = functools.partial(type("Handler", (Pages,), {"away": away}), directory=str(pages))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as place:
        yield f"http{'s' if context else ''}://{place}"


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for this machine. The test and the programs that it starts trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a mirror")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    both = tmp_path / "mirror.pem"
    both.write_bytes(key.private_bytes(*forms) + made.public_bytes(forms[0]))
    monkeypatch.setenv("SSL_CERT_FILE", str(both))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Serves a folder with the paths of Pulumi's releases."""
    folder = tmp_path / "releases" / f"v{ENGINE_VERSION}"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def releases(pages: Path, secure: ssl.SSLContext) -> Iterator[tuple[Path, str]]:
    """Serves a folder as Pulumi's release pages."""
    with served(pages.parent, secure) as address:
        yield pages, address


def release(folder: Path, checksum: str | None = None, programs: Sequence[str] = PROGRAMS) -> str:
    """Makes an archive with scripts in place of Pulumi's programs, and returns its checksum."""
    here = Machine.here()
    name = f"pulumi-v{ENGINE_VERSION}-{here.os}-{here.processor.replace('amd64', 'x64')}.tar.gz"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for program in programs:
            script = f"#!/bin/sh\necho v{ENGINE_VERSION}\n".encode()
            member = tarfile.TarInfo(f"pulumi/{program}")
            member.size = len(script)
            archive.addfile(member, io.BytesIO(script))
    (folder / name).write_bytes(content.getvalue())
    found = hashlib.sha256(content.getvalue()).hexdigest()
    (folder / f"pulumi-{ENGINE_VERSION}-checksums.txt").write_text(f"{checksum or found}  {name}\n")
    return found
