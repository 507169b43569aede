# SPDX-License-Identifier: Apache-2.0
"""The log manager gives the files of one attempt, by ranges, and nothing else of the machine."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.openpai.attempts import attempt_log_folder
from localcloud.openpai.job_store import JobStore
from localcloud.openpai.logs import log_names, read_log
from localcloud.openpai.tokens import Tokens
from localcloud.server.api_errors import ApiError
from localcloud.server.http import query_parameters

_CONTENT = bytes(range(256)) * 100
_TAIL = 16_384


class _Logs:
    def __init__(self, home: Path) -> None:
        self.home, self.attempt = home, str(uuid.uuid4())
        self.folder = attempt_log_folder(home, self.attempt)
        self.folder.mkdir(parents=True)
        (self.folder / "all").write_bytes(_CONTENT)
        self.store = JobStore(home / "state.sqlite3")
        self.tokens = Tokens(home, self.store)

    def read(self, file: str = "all", span: str = "", more: str = "", attempt: str = "") -> tuple[int, bytes]:
        path = f"/log-manager/10.151.0.16:9103/api/v1/logs/{file}"
        token = self.tokens.for_log(self.attempt)
        query = query_parameters(f"pod-uid={attempt or self.attempt}&token={token}{more}")
        reply = read_log(self.home, self.tokens, path, query, span)
        if reply.file is None:
            return reply.status, b""
        content = reply.file.path.read_bytes()[reply.file.start : reply.file.start + reply.file.length]
        return reply.status, content


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[_Logs]:
    made = _Logs(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize(
    ("span", "status", "content"),
    [
        ("", 200, _CONTENT),
        ("bytes=0-9", 206, _CONTENT[:10]),
        ("bytes=25590-", 206, _CONTENT[25590:]),
        ("bytes=-5", 206, _CONTENT[-5:]),
        ("bytes=0-99999999", 206, _CONTENT),
        ("bytes=25600-", 416, b""),
        ("bytes=9-3", 416, b""),
        # An invalid range is ignored.
        ("bytes=-", 200, _CONTENT),
        ("lines=1-2", 200, _CONTENT),
    ],
)
def test_a_log_is_served_whole_or_by_range(span: str, status: int, content: bytes, logs: _Logs) -> None:
    assert logs.read(span=span) == (status, content)


def test_tail_mode_returns_the_end_of_a_log(logs: _Logs) -> None:
    assert logs.read(more="&tail-mode=true") == (206, _CONTENT[-_TAIL:])
    (logs.folder / "all").write_bytes(b"")
    assert logs.read(more="&tail-mode=true") == (200, b"")


def test_links_and_invalid_names_are_not_served_as_logs(logs: _Logs) -> None:
    (logs.folder / "stolen").symlink_to(logs.home / "secret")
    (logs.folder / "evil\n").touch()
    (logs.folder / ".hidden").touch()
    (logs.folder / "folder").mkdir()
    assert log_names(logs.folder) == ["all"]
    for file in ("stolen", "folder", "nothing"):
        with pytest.raises(ApiError, match="NoTaskLogError"):
            logs.read(file)
    for file in ("../../secret", "..", "%2e%2e", ".hidden"):
        with pytest.raises(ApiError, match="InvalidParametersError"):
            logs.read(file)


def test_a_token_opens_only_its_own_log(logs: _Logs) -> None:
    other = str(uuid.uuid4())
    attempt_log_folder(logs.home, other).mkdir(parents=True)
    with pytest.raises(ApiError, match="UnauthorizedUserError"):
        logs.read(attempt=other)
    with pytest.raises(ApiError, match="InvalidParametersError"):
        logs.read(attempt="../" + logs.attempt)
