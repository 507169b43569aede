# SPDX-License-Identifier: Apache-2.0
"""Submissions that a cluster refuses: by the codes of its published description, and by those of its source (v1.8.0).

And what the provider refuses itself: a cluster would take these jobs.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from components.openpai.client.cluster_calls import submit_run_job
from components.openpai.client.cluster_session import Session
from components.openpai.protocol import protocol_problems, protocol_refusals
from components.platform.calls import ProviderError, call_of
from components.platform.runs import run_spec
from components.platform.values import Properties
from tests.support.serving import serving

_CLUSTERS = "The cluster has these virtual clusters: gold, silver. .* may use gold"
_QUOTA = "The virtual cluster does not have that much"
_EXCEEDS = "Job requests 16 SKUs, exceeds maximum 8 SKUs in VC gold."
ROLE = {
    "dockerImage": "image",
    "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
    "commands": ["python train.py"],
}
PROTOCOL: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "replaced",
    "type": "job",
    "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3.11"}],
    "taskRoles": {"worker": ROLE},
}
# A user's image whose password everybody can read.
_LOGIN = {"type": "dockerimage", "name": "image", "uri": "a/b:1", "auth": {"username": "u", "password": "p"}}


class _Portal(BaseHTTPRequestHandler):
    """A cluster that refuses each job in one way."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.submitted += 1  # type: ignore[attr-defined]
        self._answer(*self.server.refusal)  # type: ignore[attr-defined]

    def do_GET(self) -> None:
        clusters = self.path.endswith("/virtual-clusters")
        self._answer(200, {"gold": {}, "silver": {}} if clusters else {"virtualCluster": ["gold"]})

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def portal() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Portal)
    server.submitted = 0  # type: ignore[attr-defined]
    with serving(server):
        yield server


def _submit(portal: ThreadingHTTPServer, **changed: Any) -> bool:
    session = Session(f"http://127.0.0.1:{portal.server_address[1]}", token="secret", user="anna")
    inputs: Properties = {
        "platform": "openpai",
        "cluster": {"uri": "https://pai", "user": "anna", "virtualCluster": "bronze"},
        "token": "t",
        "displayName": "vision-dev/train/first",
        "tags": {},
        "until": "started",
        "attempt": 1,
        "nodes": [{"name": "worker-0", "role": "worker", "rank": 0}],
        "protocol": PROTOCOL,
    }
    return submit_run_job(session, call_of("test", lambda line: None), run_spec("urn", {**inputs, **changed}), "j")


@pytest.mark.parametrize(
    ("status", "code", "message", "says"),
    [
        (400, "NoVirtualClusterError", "Virtual cluster bronze is not found.", _CLUSTERS),
        (403, "ForbiddenUserError", "User anna is not allowed to do operation in bronze", _CLUSTERS),
        (403, "NoEnoughQuotaError", "too much", _QUOTA),
        (400, "InvalidProtocolError", _EXCEEDS, _QUOTA),
        (400, "InvalidProtocolError", "Duplicate deployments a.", "rules go beyond the protocol's"),
    ],
)
def test_a_refusal_says_what_to_do_in_either_form(
    portal: ThreadingHTTPServer, status: int, code: str, message: str, says: str
) -> None:
    portal.refusal = status, {"code": code, "message": message}  # type: ignore[attr-defined]
    with pytest.raises(ProviderError, match=says) as refused:
        _submit(portal)
    assert message in str(refused.value)


@pytest.mark.parametrize("status", [409, 400])
def test_a_name_that_is_taken_is_no_failure(portal: ThreadingHTTPServer, status: int) -> None:
    portal.refusal = status, {"code": "ConflictJobError", "message": "Job anna~j already exists."}  # type: ignore[attr-defined]
    assert not _submit(portal)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"taskRoles": {"worker": {**ROLE, "commands": ["<% $parameters.rate %>"]}}}, "nothing is called"),
        ({"taskRoles": {"worker": {**ROLE, "taskRetryCount": -2}}}, "again even after success"),
        ({"taskRoles": {"worker": {**ROLE, "taskRetryCount": -1}}}, "counts from 0"),
        ({"taskRoles": {"worker": ROLE, "Wor_ker": ROLE}}, "the controller calls 2 task roles"),
        ({"prerequisites": [_LOGIN]}, "is readable by all"),
        ({"extras": {"gangAllocation": "false"}}, "is not of type boolean"),
    ],
)
def test_what_a_cluster_takes_and_should_not_is_refused_before_it_is_sent(
    portal: ThreadingHTTPServer, changed: dict[str, Any], reason: str
) -> None:
    protocol = {**PROTOCOL, **changed}
    assert protocol_refusals(protocol) == []
    assert [each for each in protocol_problems(protocol) if reason in str(each)]
    with pytest.raises(ProviderError, match=reason):
        _submit(portal, protocol=protocol)
    assert portal.submitted == 0  # type: ignore[attr-defined]
