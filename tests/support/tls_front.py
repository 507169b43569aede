# SPDX-License-Identifier: Apache-2.0
"""A TLS proxy in front of a server without TLS, with a certificate authority of its own, as companies have."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.serving import serving

_CHUNK = 64 * 1024


@dataclass(frozen=True)
class Authority:
    """A certificate authority. `pem`: the certificate that clients have to trust."""

    name: x509.Name
    key: ec.EllipticCurvePrivateKey
    pem: str

    @classmethod
    def made(cls, called: str) -> Authority:
        """Makes an authority without the extensions that strict clients require, as many companies do."""
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, called)])
        key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        own = _unsigned(name, name, key).add_extension(constraints, critical=False).sign(key, hashes.SHA256())
        return cls(name, key, own.public_bytes(serialization.Encoding.PEM).decode())

    def context(self, folder: Path, address: str, days: int = 1) -> ssl.SSLContext:
        """A server's TLS context. Its certificate is for `address`, and valid for this number of days."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a portal")])
        other = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        made = _unsigned(name, self.name, key, days).add_extension(other, critical=False)
        signed = made.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        both = folder / f"portal-{key.private_numbers().private_value % 10**8}.pem"
        both.write_bytes(key.private_bytes(*forms) + signed)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        return context


def _unsigned(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - datetime.timedelta(days=9)).not_valid_after(now + datetime.timedelta(days=days))


@contextlib.contextmanager
def tls_front(behind: tuple[str, int], context: ssl.SSLContext) -> Iterator[str]:
    """The address of the proxy. It forwards the decrypted bytes to `behind` unchanged."""

    class Door(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with (
                contextlib.suppress(OSError),
                context.wrap_socket(self.request, server_side=True) as outside,
                socket.create_connection(behind) as inside,
            ):
                answers = threading.Thread(target=_pass_on, args=(inside, outside))
                answers.start()
                _pass_on(outside, inside)
                answers.join()

    class Doors(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with serving(Doors(("127.0.0.1", 0), Door)) as place:
        yield f"https://{place}"


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        # Without this, each side would wait for the other.
        target.shutdown(socket.SHUT_RDWR)
