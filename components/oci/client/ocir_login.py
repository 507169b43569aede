# SPDX-License-Identifier: Apache-2.0
"""The login that docker has for the registry: whether it has the form that the tenancy needs, and still counts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from components.oci.client.registry import TOKEN_PATH, TOKEN_USER
from components.oci.client.tenancy_reader import TenancyReader
from components.platform.calls import ProviderError
from components.platform.images import Endpoint
from components.platform.prerequisites import Answer, Problem

_SECONDS = (5.0, 20.0)
# Of one user.
_MOST_TOKENS = 2


def docker_login(environment: Mapping[str, str], host: str) -> tuple[str, str] | None:
    """User and password. None if docker has no login for the host, or keeps it elsewhere, such as in a keychain."""
    folder = environment.get("DOCKER_CONFIG") or Path(environment.get("HOME") or Path.home(), ".docker")
    try:
        file = Path(folder, "config.json")
        logins = json.loads(file.read_text("utf-8"))["auths"] if file.is_file() else {}
        text = next(value["auth"] for key, value in logins.items() if host in (key, key.removeprefix("https://")))
        user, colon, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return None
    return (user, password) if colon else None


def check_ocir_login(
    reader: TenancyReader, endpoint: Endpoint, login: tuple[str, str] | None, is_needed: bool
) -> Iterator[Answer]:
    """`is_needed`: ADS pushes with docker's login; trainyard signs in by itself."""
    example = f"docker login {endpoint.host} -u '{reader.namespace}/<user>'"
    if login is None:
        if is_needed:
            yield Problem(
                f"docker has no login for {endpoint.host}, by which ADS pushes", f"{example}, with an auth token"
            )
        return
    user, password = login
    if user != TOKEN_USER and not user.startswith(f"{reader.namespace}/"):
        federated = f"of a federated user '{reader.namespace}/oracleidentitycloudservice/<user>'"
        yield Problem(
            f"docker's user name for {endpoint.host} does not begin with {reader.namespace}/", f"{example}; {federated}"
        )
        return
    try:
        ask = reader.session.client("artifacts").base_client.session
        answer = ask.get(f"{endpoint.url}{TOKEN_PATH}", auth=(user, password), timeout=_SECONDS)
    except OSError as error:
        raise ProviderError(
            f"{endpoint.host} did not answer: {type(error).__name__}", "Check the network or a proxy"
        ) from None
    if answer.status_code == 401:
        yield Problem(f"{endpoint.host} does not accept docker's login", f"{_token_remedy(reader)}: {example}")


def _token_remedy(reader: TenancyReader) -> str:
    """What its user has to do for a token that counts."""
    if not reader.user:
        return "Log in again, with an auth token"
    tokens = reader.read("List the auth tokens of the caller", "identity", "list_auth_tokens", reader.user)
    expired = [one for one in tokens if one.time_expires and one.time_expires < datetime.now(UTC)]
    if len(tokens) >= _MOST_TOKENS and not expired:
        return f"Log in with one of your {len(tokens)} auth tokens, or delete one and make another"
    make = f"`oci iam auth-token create --user-id {reader.user} --description docker`"
    return f"Make an auth token ({make}), then log in with it" if len(tokens) <= len(expired) else (
        f"Log in with your auth token, or make another ({make})"
    )  # fmt: skip
