# SPDX-License-Identifier: Apache-2.0
"""Tokens of the local OpenPAI: valid, invalid, expired and revoked."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from localcloud.openpai.job_store import JobStore
from localcloud.openpai.tokens import Tokens
from localcloud.server import http
from localcloud.server.api_errors import ApiError

_WEEK = 7 * 24 * 3600


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    with closing(JobStore(tmp_path / "state.sqlite3")) as store:
        yield Tokens(tmp_path, store)


def _basic(user: str, token: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


def test_a_token_names_its_user(tokens: Tokens) -> None:
    login, program = tokens.create("user", application=False), tokens.create("user", application=True)
    assert tokens.caller(f"Bearer {login}").person.name == "user"
    assert tokens.caller(f"bearer {program}").application
    assert tokens.caller(_basic("user", program)).application
    assert tokens.of("user") == sorted([login, program])
    assert tokens.of("deployer") == []


@pytest.mark.parametrize(
    "changed",
    [
        lambda token: "",
        lambda token: f"Bearer {token[:-2]}",
        lambda token: f"Bearer {token.rpartition('.')[0]}.",
        lambda token: f"Digest {token}",
        lambda token: _basic("user", token),  # a token of a login
        lambda token: _basic("deployer", token),
    ],
    ids=["none", "cut", "unsigned", "another scheme", "a login as basic", "another user"],
)
def test_an_invalid_token_is_refused(changed: Callable[[str], str], tokens: Tokens) -> None:
    with pytest.raises(ApiError) as refusal:
        tokens.caller(changed(tokens.create("user", application=False)))
    assert (refusal.value.status, refusal.value.code) == (401, "UnauthorizedUserError")


def test_tokens_expire_or_are_revoked(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    login, program = tokens.create("user", application=False), tokens.create("user", application=True)
    revoked = tokens.create("user", application=True)
    tokens.revoke(revoked)
    later = http.current_moment() + _WEEK + 1
    monkeypatch.setattr(http, "current_moment", lambda: later)
    for token in (login, revoked):
        with pytest.raises(ApiError, match="invalid"):
            tokens.caller(f"Bearer {token}")
    assert tokens.caller(f"Bearer {program}")
    tokens.remove_expired()
    assert tokens.of("user") == [program]


def test_a_log_token_opens_its_log_until_it_expires(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens.for_log("one")
    assert tokens.opens_log(token, "one")
    assert not tokens.opens_log(token, "another")
    # It is no token of a user, and tokens of users open no logs.
    with pytest.raises(ApiError, match="invalid"):
        tokens.caller(f"Bearer {token}")
    assert not tokens.opens_log(tokens.create("user", application=True), "one")
    later = http.current_moment() + 3600
    monkeypatch.setattr(http, "current_moment", lambda: later)
    assert not tokens.opens_log(token, "one")
