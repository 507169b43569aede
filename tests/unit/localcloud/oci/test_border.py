# SPDX-License-Identifier: Apache-2.0
"""Each request is parsed once: ambiguous ones are refused, and no handler gets the request itself."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from localcloud.oci.container_images import is_repository, parse_image_address, pushed_repository
from localcloud.server.api_errors import ApiError
from localcloud.server.cloud import MARKER_NAME, MARKER_PATH, answer_marker
from localcloud.server.http import Request, mask_secrets, parse_strict_json, query_parameters, require_single_headers

ROOM = Path(__file__).parents[4] / "localcloud"
# The modules that read requests: the server, its APIs, and the registry's tokens.
READERS = {
    "server/http.py", "server/app.py", "server/cloud.py", "oci/api.py", "oci/registry.py", "oci/registry_tokens.py",
    "console/console_page.py", "openpai/cluster.py",
}  # fmt: skip
_PLAIN = "http://127.0.0.1:8080"


def test_only_apis_see_requests() -> None:
    """AWS's own API has a test of its own."""
    seen = {
        path.relative_to(ROOM).as_posix()
        for path in ROOM.rglob("*.py")
        if "aws" not in path.relative_to(ROOM).parts
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name) and node.id == "Request"
    }
    assert seen == READERS


@pytest.mark.parametrize(
    "text", ["a=1&a=2", "a=1&%61=2", "a&a", "a=1&b=2&a=", "a=1&a=1", "&".join(f"a{n}=1" for n in range(201)), "a=%ff"]
)
def test_a_repeated_query_parameter_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refusal:
        query_parameters(text)
    assert refusal.value.status == 400


def test_different_query_parameters_are_accepted() -> None:
    assert query_parameters("a=1&A=2&b=&=x") == {"a": "1", "A": "2", "b": "", "": "x"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"x": {"a": 1, "\\u0061": 2}}',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-8-sig"),
        '{"a": 1}'.encode("utf-32-be"),
        b'{"a": "\xc0\xaf"}',
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
    ],
    ids=["repeated", "escaped", "UTF-16", "BOM", "UTF-32", "overlong", "NaN", "half a pair"],
)
def test_ambiguous_json_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_strict_json(body)


def _request(headers: dict[str, str], *repeated: str, of_a_node: bool = False) -> Request:
    return Request("GET", MARKER_PATH, MARKER_PATH, headers, frozenset(repeated), of_a_node)


@pytest.mark.parametrize("name", ["if-match", "opc-retry-token", "content-type", "host", "opc-meta-a"])
def test_a_repeated_header_is_refused(name: str) -> None:
    with pytest.raises(ApiError, match=f"{name} is repeated"):
        require_single_headers(_request({name: "x"}, name))
    require_single_headers(_request({"accept": "x"}, "accept"))


class _Cloud:
    endpoint, facts = _PLAIN, {"tenancy": "ocid1.tenancy.oc1..a"}


@pytest.mark.parametrize(
    ("request_", "status", "has_facts"),
    [
        (_request({"host": "127.0.0.1:8080"}), 200, True),
        (_request({"host": "localhost:8080"}), 200, True),
        (_request({"host": "rebound.example.com:8080"}), 403, False),
        (_request({"host": "127.0.0.1:8080"}, "host"), 403, False),
        (_request({}), 403, False),
        (_request({"host": "127.0.0.1:8080"}, of_a_node=True), 200, False),
        (_request({"host": "10.0.0.1"}, of_a_node=True), 200, False),
    ],
)
def test_the_marker_has_facts_for_this_machine_only(request_: Request, status: int, has_facts: bool) -> None:
    cloud: Any = _Cloud()
    reply = answer_marker(cloud, request_)
    assert (reply.status, "tenancy" in reply.body) == (status, has_facts)
    assert "home" not in reply.body
    if status == 200:
        assert reply.body["cloud"] == MARKER_NAME


def test_nodes_get_no_facts_in_the_marker() -> None:
    cloud: Any = _Cloud()
    assert set(answer_marker(cloud, _request({}, of_a_node=True)).body) == {"cloud", "version"}


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("/a/b?limit=1", "/a/b?limit=1"),
        ("/log-manager/x?pod-uid=1&token=abc&tail-mode=true", "/log-manager/x?pod-uid=1&token=****&tail-mode=true"),
        ("/b/k?X-Amz-Signature=00ff&X-Amz-Date=1", "/b/k?X-Amz-Signature=****&X-Amz-Date=1"),
        ("/b/k?%58-amz-security-token=00ff", "/b/k?%58-amz-security-token=****"),
        (f"/rest-server/api/v2/tokens/{'e' * 150}?x", "/rest-server/api/v2/tokens/****?x"),
        ("/rest-server/api/v2/tokens/check", "/rest-server/api/v2/tokens/check"),
    ],
)
def test_tokens_are_masked_in_logs(target: str, shown: str) -> None:
    assert mask_secrets(target) == shown
    assert Request("GET", target, target.partition("?")[0], {}).shown == shown


@pytest.mark.parametrize(
    "address",
    [
        "iad.ocir.io/ns/mine/x:1", "iad.ocir.io/ns/mine:x:1", "iad.ocir.io/ns/mine@x", "iad.ocir.io/ns/mine", "mine:1",
        "iad.ocir.io/ns/mine/x@sha256:" + "0" * 64, "iad.ocir.io/ns/:1", "iad.ocir.io//mine:1", 5, None, ["x"],
    ],
)  # fmt: skip
def test_an_address_names_one_repository(address: Any) -> None:
    """Access is checked for the repository that gets the push. An invalid name is not a repository."""
    parts = parse_image_address(address)
    assert pushed_repository(address) == (parts.repository if parts else "")
    assert parts is None or (":" not in parts.repository and "@" not in parts.repository)


def test_valid_repository_names() -> None:
    assert is_repository("team/name")
    assert not any(map(is_repository, ["", "mine:x", "mine@x", "a//b", "../a", "a%2fb", "A", "a/", "a\n"]))
