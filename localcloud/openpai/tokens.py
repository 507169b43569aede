# SPDX-License-Identifier: Apache-2.0
"""Tokens of the local OpenPAI: JSON web tokens, as a real cluster signs them. A table has the valid ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from localcloud.files import write_secret
from localcloud.openpai import accounts
from localcloud.openpai.accounts import Person
from localcloud.openpai.job_store import JobStore
from localcloud.openpai.rest_errors import unauthorized_user
from localcloud.server import http

LOGIN_SECONDS = 7 * 24 * 3600.0
_LOG_SECONDS = 600
_HEADER = {"alg": "HS256", "typ": "JWT"}


@dataclass(frozen=True)
class Caller:
    """A caller and the token. `application`: whether the token was made for programs, and so does not expire."""

    person: Person
    token: str
    application: bool


class Tokens:
    """Signs, verifies and revokes tokens."""

    def __init__(self, folder: Path, store: JobStore) -> None:
        self._store = store
        path = folder / "secret"
        if not path.exists():
            write_secret(path, secrets.token_bytes(32))
        self._secret = path.read_bytes()

    def create(self, user: str, application: bool, seconds: float = LOGIN_SECONDS) -> str:
        now = int(http.current_moment())
        content = {"username": user, "application": application, "iat": now, "jti": secrets.token_hex(8)}
        token = self._sign(content if application else {**content, "exp": now + seconds})
        with self._store.transaction():
            self._store.connection.execute("INSERT INTO tokens VALUES (?, ?)", (token, user))
        return token

    def of(self, user: str) -> list[str]:
        """The valid tokens of a user."""
        rows = self._store.connection.execute("SELECT token FROM tokens WHERE user = ?", (user,))
        return [token for (token,) in rows if self._content(token) is not None]

    def user_of(self, token: str) -> str:
        """The user of a token; empty if the token is not valid."""
        content = self._content(token)
        return str(content.get("username", "")) if content else ""

    def revoke(self, token: str) -> None:
        with self._store.transaction():
            self._store.connection.execute("DELETE FROM tokens WHERE token = ?", (token,))

    def remove_expired(self) -> None:
        """Removes expired tokens."""
        rows = self._store.connection.execute("SELECT token FROM tokens").fetchall()
        expired = [(token,) for (token,) in rows if self._content(token) is None]
        if expired:
            with self._store.transaction():
                self._store.connection.executemany("DELETE FROM tokens WHERE token = ?", expired)

    def caller(self, authorization: str) -> Caller:
        """The caller, by the header Authorization. Refuses a missing or invalid token."""
        if not authorization:
            raise unauthorized_user("Guest is not allowed to do this operation.")
        scheme, _, given = authorization.partition(" ")
        user, token = "", given.strip()
        if scheme.lower() == "basic":
            user, _, token = _decode_base64url(token).partition(":")
        content = self._content(token) if scheme.lower() in ("basic", "bearer") else None
        known = self._store.connection.execute("SELECT user FROM tokens WHERE token = ?", (token,)).fetchone()
        person = accounts.find_person(known[0]) if known else None
        if content is None or person is None or (user and (user != person.name or not content["application"])):
            raise unauthorized_user("Your token is invalid.")
        return Caller(person, token, bool(content["application"]))

    def for_log(self, attempt: str) -> str:
        """A token for the logs of one task attempt, which expires after ten minutes."""
        return self._sign({"attempt": attempt, "exp": int(http.current_moment()) + _LOG_SECONDS})

    def opens_log(self, token: str, attempt: str) -> bool:
        content = self._content(token)
        return content is not None and content.get("attempt") == attempt

    def _sign(self, content: dict[str, object]) -> str:
        text = ".".join(_encode_base64url(json.dumps(part).encode()) for part in (_HEADER, content))
        return f"{text}.{_encode_base64url(self._mac(text))}"

    def _content(self, token: str) -> dict[str, object] | None:
        """The content of a token; None if it was not signed here, or has expired."""
        text, _, signature = token.rpartition(".")
        if not text or not hmac.compare_digest(_encode_base64url(self._mac(text)).encode(), signature.encode()):
            return None
        content: dict[str, object] = json.loads(_decode_base64url(text.partition(".")[2]))
        expires = content.get("exp")
        return content if not isinstance(expires, int | float) or expires > http.current_moment() else None

    def _mac(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).digest()


def _encode_base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode_base64url(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return ""
