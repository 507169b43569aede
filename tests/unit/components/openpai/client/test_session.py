# SPDX-License-Identifier: Apache-2.0
"""Calls of a portal: what is told to whom, and what answers of strangers (proxies, other hosts) mean."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from components.openpai.client.cluster_calls import ask_cluster, attempt_on_cluster
from components.openpai.client.cluster_session import Session, openpai_session_of_caller
from components.platform.calls import ProviderError, call_of
from components.platform.client import Where
from tests.support.serving import serving

CLUSTER = {"uri": "https://pai/", "user": "anna", "virtualCluster": "default"}


class _Stranger(BaseHTTPRequestHandler):
    """Whatever stands between us and a cluster: the path says what it answers."""

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
        status = int(self.path.rpartition("/")[2])
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "http://elsewhere.invalid/x")
        body = b"<html>\x1b[2J a page </html>"
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Stranger)
    server.seen = []  # type: ignore[attr-defined]
    with serving(server):
        yield server


def _uri(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (302, "Name|name that|elsewhere.invalid"),
        (401, "OPENPAI_TOKEN"),
        (404, "address of the web portal"),
        (200, "not JSON"),
    ],
)
def test_an_answer_that_is_not_the_clusters_says_what_to_look_at(
    stranger: ThreadingHTTPServer, status: int, says: str
) -> None:
    session = Session(_uri(stranger), token="secret")
    with pytest.raises(ProviderError, match=says) as refused:
        ask_cluster(session, call_of("test", lambda line: None), "Ask", str(status))
    assert "\x1b" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_token_goes_to_the_portal_only(stranger: ThreadingHTTPServer) -> None:
    session = Session(_uri(stranger), token="secret")
    session.send("GET", session.address("200"))
    session.send("GET", session.within(f"http://localhost:{stranger.server_address[1]}/200"))
    assert stranger.seen == ["Bearer secret", None]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("variables", "token"),
    [
        ({}, "state"),
        ({"OPENPAI_TOKEN": "mine"}, "mine"),
        ({"OPENPAI_TOKEN": "mine", "OPENPAI_URI": "https://pai"}, "mine"),
        ({"OPENPAI_TOKEN": "mine", "OPENPAI_URI": "https://other"}, "state"),
        ({"OPENPAI_TOKEN": "mine\r\n", "OPENPAI_URI": " https://PAI:443/\n"}, "mine"),
    ],
)
def test_a_token_of_the_environment_counts_for_the_cluster_that_it_names(variables: Any, token: str) -> None:
    assert Session.of({"cluster": CLUSTER, "token": "state"}, variables).token == token


def test_nobody_is_asked_without_a_token_or_an_address() -> None:
    with pytest.raises(ProviderError, match="no token for https://pai"):
        attempt_on_cluster(call_of("test", print), "Ask", lambda: Session("https://pai").send("GET", "https://pai/x"))
    with pytest.raises(ProviderError, match="OPENPAI_URI"):
        Session.of({}, {}).address("jobs")


@pytest.mark.parametrize("token", ["two words", "two\nlines", "日本", "Bearer x"])
def test_what_cannot_be_a_token_is_not_sent(token: str) -> None:
    session = Session("https://pai", token=token, token_from="the stack's")
    with pytest.raises(ProviderError, match=r"\(the stack's\).*no token has") as refused:
        session.send("GET", session.address("jobs"))
    assert token not in str(refused.value)


def test_a_token_for_another_portal_is_named() -> None:
    session = Session.of({"cluster": CLUSTER}, {"OPENPAI_TOKEN": "mine", "OPENPAI_URI": "https://other"})
    with pytest.raises(ProviderError, match="OPENPAI_TOKEN is set, but for https://other"):
        session.send("GET", session.address("jobs"))


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("https://pai:port", "[Pp]ort"),
        ("https://pai:99999", "[Pp]ort"),
        ("https://[::1", "IPv6"),
        ("https://anna:secret@pai", "a user name"),
        ("https://büro", "xn--"),
        ("https://pai/a b", "spaces"),
        ("https://", "names no host"),
        ("ftp://pai", "https://"),
        ("https://pai/?a=b", "follow"),
    ],
)
def test_an_address_that_can_never_answer_is_refused_at_once(uri: str, why: str) -> None:
    """It is not tried again for minutes."""
    with pytest.raises(ProviderError, match=why):
        Session(uri, token="t").address("jobs")


@pytest.mark.parametrize(
    ("portal", "given", "whole"),
    [
        ("https://pai", "/log-manager/a?b=c", "https://pai/log-manager/a?b=c"),
        ("https://pai/east/", "/log-manager/a?b=c", "https://pai/east/log-manager/a?b=c"),
        ("https://pai/east", "/east/log-manager/a", "https://pai/east/log-manager/a"),
        ("https://pai/east", "http://logs/a", "http://logs/a"),
    ],
)
def test_paths_that_a_cluster_gives_are_below_its_portal(portal: str, given: str, whole: str) -> None:
    assert Session(portal).within(given) == whole


def test_authorities_that_cannot_be_read_are_named() -> None:
    session = Session("https://127.0.0.1:1", token="t", certificate="/nowhere/ca.pem")
    with pytest.raises(ProviderError, match="certificate"):
        session.send("GET", session.address("jobs"))


def test_a_command_reads_what_the_stack_file_says_and_keeps_its_token_from_another_portal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENPAI_TOKEN", raising=False)
    written = {**CLUSTER, "token": "state", "certificate": "ca.pem"}
    session = openpai_session_of_caller(Where({"trainyard:cluster": written}, folder=tmp_path))
    assert (session.uri, session.user, session.token) == ("https://pai", "anna", "state")
    assert session.certificate == str(tmp_path / "ca.pem")
    sealed = openpai_session_of_caller(Where({"trainyard:cluster": {**written, "token": {"secure": "v1:…"}}}))
    assert sealed.token == ""
    assert openpai_session_of_caller(Where({"trainyard:cluster": written}, place="https://other")).token == ""
