# SPDX-License-Identifier: Apache-2.0
"""The REST API of a cluster: where it is, whose token counts, and which authorities sign its certificate."""

import base64
import binascii
import http.client
import json
import os
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
from provider.base.errors import ProviderError
from provider.openpai.errors import redirection, refused_answer

URI_VARIABLE, TOKEN_VARIABLE, USER_VARIABLE = "OPENPAI_URI", "OPENPAI_TOKEN", "OPENPAI_USER"
_SECONDS_TO_ANSWER = 60
# The list of a cluster's jobs is the largest answer; more than this is none.
_LONGEST_BYTES = 256 * 1024 * 1024
_API = "/rest-server/api/v2/"
_WHERE = f"Name it in the stack file (`trainyard:cluster`), or set {URI_VARIABLE} to the address of the web portal."


@dataclass(frozen=True)
class Answer:
    """`headers`: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Raises ValueError where the body is none."""
        try:
            return json.loads(self.body)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect may lead to another host, which must not get the token."""

    def redirect_request(self, *args: Any, **options: Any) -> None:
        return None


@dataclass
class Session:
    """One user of one cluster. `token_from`: where the token comes from, for a person whose token is refused.

    `user`: whose runs are meant. Empty where nobody says it: then everybody's are.
    """

    uri: str
    user: str = ""
    virtual_cluster: str = ""
    token: str = field(default="", repr=False)
    token_from: str = ""
    certificate: str = ""
    _made: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @classmethod
    def of(cls, config: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> "Session":
        """`config` has the inputs that connect. A token of the environment comes first: those in a state expire."""
        variables = os.environ if environment is None else environment
        cluster = config.get("cluster") or {}
        uri = str(cluster.get("uri") or variables.get(URI_VARIABLE) or "").rstrip("/")
        named = (variables.get(URI_VARIABLE) or uri).rstrip("/")
        token, source, caller = str(config.get("token") or ""), "the stack's", ""
        if variables.get(TOKEN_VARIABLE) and named == uri:
            token, source = variables[TOKEN_VARIABLE], f"that of {TOKEN_VARIABLE}"
            caller = variables.get(USER_VARIABLE) or ""
        return cls(
            uri=uri,
            user=str(cluster.get("user") or caller or user_of_token(token)),
            virtual_cluster=str(cluster.get("virtualCluster") or ""),
            token=token,
            token_from=source,
            certificate=str(config.get("certificate") or ""),
        )

    def address(self, path: str) -> str:
        """The address of a resource of the REST API."""
        if not self.uri:
            raise ProviderError("No OpenPAI cluster is named.", _WHERE)
        return f"{self.uri}{_API}{path}"

    def within(self, address: str) -> str:
        """An address that the cluster gave, as a whole one: some are paths below the portal."""
        return urljoin(f"{self.uri}/", address)

    def send(
        self, method: str, address: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One call, tried once. Raises ApiError where the cluster refuses, and errors of the network.

        The token goes to the portal only: an address that the cluster gave may be another host's.
        """
        request = urllib.request.Request(address, data=body, method=method, headers=dict(headers or {}))
        request.add_header("User-Agent", f"trainyard/{VERSION}")
        if _host(address) == _host(self.uri):
            if not self.token:
                raise ProviderError(
                    f"There is no token for {self.uri}.",
                    f"Make one in the web portal (your profile, Tokens), and set {TOKEN_VARIABLE}, or `token` of "
                    "`trainyard:cluster` as a secret.",
                )
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with self._opener().open(request, timeout=_SECONDS_TO_ANSWER) as answer:
                names = {name.lower(): value for name, value in answer.headers.items()}
                return Answer(answer.status, names, answer.read(_LONGEST_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                if 300 <= error.code < 400:
                    raise redirection(self.uri, error.headers.get("Location") or "") from None
                ranged = error.headers.get("Content-Range") or ""
                raise refused_answer(error.code, _rest(error), self.token_from, ranged) from None

    def _opener(self) -> urllib.request.OpenerDirector:
        """Proxies are those of the environment, as for every client."""
        with self._lock:
            if self._made is None:
                context = urllib.request.HTTPSHandler(context=_trust(self.certificate))
                self._made = urllib.request.build_opener(_NoRedirects, context)
            made: urllib.request.OpenerDirector = self._made
            return made


def user_of_token(token: str) -> str:
    """The user that a token names. It is a JSON web token; we read it, and the cluster judges it. Empty if unknown."""
    parts = token.split(".")
    if len(parts) != 3:
        return ""
    try:
        content = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return ""
    user = content.get("username") if isinstance(content, Mapping) else None
    return user if isinstance(user, str) else ""


def _host(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def _rest(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(64 * 1024)
    except (OSError, http.client.HTTPException):
        return b""


def _trust(certificate: str) -> ssl.SSLContext:
    """The machine's authorities, and beside them the cluster's own."""
    context = ssl.create_default_context()
    if not certificate:
        return context
    try:
        if certificate.lstrip().startswith("-----BEGIN"):
            context.load_verify_locations(cadata=certificate)
        else:
            context.load_verify_locations(cafile=Path(certificate))
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ProviderError(
            f"The authorities in `certificate` cannot be read: {error}",
            "Give certificates in PEM, or the path of a file with them.",
        ) from error
    return context
