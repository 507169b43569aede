# SPDX-License-Identifier: Apache-2.0
"""Sessions for the REST API of a cluster: its address, the token, and the authorities that sign its certificate."""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import os
import re
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from catalog.version import VERSION
from components.openpai.client.cluster_errors import redirection_error, refused_answer
from components.platform.calls import ProviderError
from components.platform.client import Where

SCHEMES = ("https", "http")
_PORTS = {"https": 443, "http": 80}
_BEGIN = "-----BEGIN"
_REMEDY = "Give certificates in PEM, or the path of a file with them."
URI_VARIABLE, TOKEN_VARIABLE, USER_VARIABLE = "OPENPAI_URI", "OPENPAI_TOKEN", "OPENPAI_USER"
_SECONDS_TO_ANSWER = 60
# The largest response is the list of a cluster's jobs. A longer one is an error.
_LONGEST_BYTES = 256 * 1024 * 1024
_API = "/rest-server/api/v2/"
# Tokens are sent in a header, which allows no other characters.
_TOKEN = re.compile(r"[!-~]+")
_WHERE = f"Name it in the stack file (`trainyard:cluster`), or set {URI_VARIABLE} to the address of the web portal."
CLUSTER_KEY = "trainyard:cluster"


@dataclass(frozen=True)
class Portal:
    """The portal of a cluster. Different spellings of one address are equal."""

    # Scheme, name and port.
    host: tuple[str, str, int | None]
    path: str = ""
    written: str = field(default="", compare=False)

    @classmethod
    def of(cls, address: str) -> Portal:
        """The portal of an address. Addresses below a portal have its host. An invalid address equals only itself."""
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError:
            return cls(("", address, None))
        host = parts.scheme, parts.hostname or "", port or _PORTS.get(parts.scheme)
        return cls(host, parts.path.rstrip("/"), f"{parts.scheme}://{parts.netloc}")

    def within(self, address: str) -> str:
        """The absolute address. A path is below the portal, unless it already begins with the portal's own path."""
        below = address.startswith("/") and not address.startswith("//")
        if not below or f"{address}/".startswith(f"{self.path}/"):
            return urljoin(f"{self.written}{self.path}/", address)
        return f"{self.written}{self.path}{address}"


def address_problem(address: str) -> str | None:
    """The reason why an address is invalid, or None."""
    if not address.isascii() or any(letter <= " " for letter in address):
        return "it has spaces, or letters that an address does not have (write a name's `xn--` form)"
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in SCHEMES:
        return "it does not begin with https:// or http://"
    if not parts.hostname or port == 0:
        return "it names no host, or no port"
    if "@" in parts.netloc:
        return "it has a user name, but the token identifies the user"
    if parts.query or parts.fragment:
        return "nothing may follow its path"
    return None


def trusting_context(certificate: str) -> ssl.SSLContext:
    """`certificate`: PEM, or the path of a file with it. Raises ProviderError."""
    context = ssl.create_default_context()
    if not certificate:
        return context
    try:
        # Bundles may have comments in any language before and between the certificates.
        text = certificate if _BEGIN in certificate else Path(certificate).read_text("utf-8", "replace")
        context.load_verify_locations(cadata=text.encode("ascii", "replace").decode())
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ProviderError(f"The authorities in `certificate` cannot be read: {error}", _REMEDY) from error
    # Since Python 3.13, authorities need extensions that many companies' own authorities lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


@dataclass(frozen=True)
class Answer:
    """A response. `headers`: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body. Raises ValueError if it is not JSON."""
        try:
            return json.loads(self.body)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: another host must not get the token."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


@dataclass
class Session:
    """One user of one cluster. `token_from`: the source of the token, for error messages.

    `user`: the user whose runs are read. Empty: everybody's runs.
    """

    uri: str
    user: str = ""
    virtual_cluster: str = ""
    token: str = field(default="", repr=False)
    token_from: str = ""
    certificate: str = ""
    # The portal of the environment's token, if it is another one.
    token_elsewhere: str = ""
    _made: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Session:
        """`config`: the inputs that connect. A token in the environment takes precedence, because tokens in a state
        expire."""
        variables = os.environ if environment is None else environment
        cluster = config.get("cluster") or {}
        # Values from files and commands end with a line break, which does not belong to them.
        named, given = (variables.get(name, "").strip() for name in (URI_VARIABLE, TOKEN_VARIABLE))
        uri = (str(cluster.get("uri") or "").strip() or named).rstrip("/")
        token, source, caller = str(config.get("token") or "").strip(), "the stack's", ""
        meant = not named or Portal.of(named) == Portal.of(uri)
        if given and meant:
            token, source = given, f"that of {TOKEN_VARIABLE}"
            caller = variables.get(USER_VARIABLE) or ""
        return cls(
            uri=uri,
            user=str(cluster.get("user") or caller or user_of_token(token)),
            virtual_cluster=str(cluster.get("virtualCluster") or ""),
            token=token,
            token_from=source,
            certificate=str(config.get("certificate") or ""),
            token_elsewhere=named if given and not meant else "",
        )

    def address(self, path: str) -> str:
        """The address of a resource of the REST API."""
        if not self.uri:
            raise ProviderError("No OpenPAI cluster is named.", _WHERE)
        if problem := address_problem(self.uri):
            raise ProviderError(f"{self.uri} is not the address of a cluster: {problem}.", _WHERE)
        return f"{self.uri}{_API}{path}"

    def within(self, address: str) -> str:
        """The absolute address for one that the cluster gave. Some are paths below the portal, which may itself have a
        path."""
        return Portal.of(self.uri).within(address)

    def send(
        self, method: str, address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Sends one request without retries. Raises ApiError if the cluster refuses it, or an error of the network.

        Only the portal gets the token: an address from the cluster may be on another host.
        """
        request = urllib.request.Request(address, data=body, method=method, headers=dict(headers or {}))
        request.add_header("User-Agent", f"trainyard/{VERSION}")
        if Portal.of(address).host == Portal.of(self.uri).host:
            request.add_unredirected_header("Authorization", f"Bearer {self._usable_token()}")
        try:
            with self._opener().open(request, timeout=_SECONDS_TO_ANSWER) as answer:
                names = {name.lower(): value for name, value in answer.headers.items()}
                return Answer(answer.status, names, answer.read(_LONGEST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                if 300 <= error.code < 400:
                    raise redirection_error(self.uri, error.headers.get("Location") or "") from None
                ranged = error.headers.get("Content-Range") or ""
                raise refused_answer(error.code, _read_error_body(error), self.token_from, ranged) from None

    def _usable_token(self) -> str:
        if not self.token:
            elsewhere = f" {TOKEN_VARIABLE} is set, but for {self.token_elsewhere}, which {URI_VARIABLE} names."
            raise ProviderError(
                f"There is no token for {self.uri}.{elsewhere if self.token_elsewhere else ''}",
                f"Make one in the web portal (your profile, Tokens), and set {TOKEN_VARIABLE}. "
                "`pulumi up` also takes `token` of `trainyard:cluster`, a secret that Pulumi alone decrypts.",
            )
        if not _TOKEN.fullmatch(self.token):
            raise ProviderError(
                f"The token for {self.uri} ({self.token_from}) has spaces, line breaks or letters that no token has.",
                "Copy it again from the web portal (your profile, Tokens): a token is one word of ASCII letters.",
            )
        return self.token

    def _opener(self) -> urllib.request.OpenerDirector:
        """The opener, with the proxies of the environment, as for every client."""
        with self._lock:
            if self._made is None:
                context = urllib.request.HTTPSHandler(context=trusting_context(self.certificate))
                self._made = urllib.request.build_opener(_NoRedirects, context)
            made: urllib.request.OpenerDirector = self._made
            return made


def user_of_token(token: str) -> str:
    """The user in a token, which is a JSON web token. Only the cluster validates it. Empty if there is none."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        content = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return ""
    user = content.get("username") if isinstance(content, Mapping) else None
    return user if isinstance(user, str) else ""


def _read_error_body(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(64 * 1024)
    except (OSError, http.client.HTTPException):
        return b""


def openpai_session_of_caller(where: Where) -> Session:
    """The session of the caller. A profile is a user of the local cloud, because OpenPAI has no profiles. A place is
    the address of a portal that the caller named; the stack's token is not sent to another portal."""
    cloud, place, folder = where.cloud, where.place, where.folder
    if cloud is not None:
        variables = cloud.env_for(where.profile) if where.profile else cloud.env_of_caller()
        return Session.of({"cluster": {"uri": cloud.endpoint}}, variables)
    written = where.config.get(CLUSTER_KEY)
    rows = written.items() if isinstance(written, Mapping) else ()
    cluster = {key: value for key, value in rows if isinstance(value, str)}
    if place and place.rstrip("/") != cluster.get("uri", "").rstrip("/"):
        return Session.of({"cluster": {"uri": place}})
    certificate = cluster.get("certificate")
    if certificate and folder is not None:
        certificate = str(folder / certificate)
    return Session.of({"cluster": cluster, "token": cluster.get("token"), "certificate": certificate})
