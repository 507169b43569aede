# SPDX-License-Identifier: Apache-2.0
"""Requests that the access check and the handler could understand differently are refused, or have the same meaning for
both."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from localcloud.control import Cloud
from tests.support.openpai_world import OpenPaiWorld
from tests.support.registry_client import Tool, digest_of
from tests.support.seams import Asked
from tests.support.signing import Signing
from tests.support.two_teams import Caller
from tests.support.wire import Wire

_MINE, _OTHER = "border/mine", "border/other"


class _Sender:
    """The user of the cloud, who may use the objects of one bucket, and push into one repository."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud, self.signing, self.wire = cloud, Signing(cloud, "user"), Wire(cloud.endpoint)
        self.space = f"/n/{cloud.namespace}/b"
        grants = [
            "Allow group scientists to manage objects in tenancy where target.bucket.name = 'mine'",
            f"Allow group scientists to manage repos in tenancy where target.repo.name = '{_MINE}'",
            f"Allow group scientists to manage vcns in compartment id {cloud.compartment}",
        ]
        with closing(Caller(cloud)) as admin:
            place = {"name": "borders", "description": "borders", "compartmentId": cloud.tenancy}
            admin.made("/20160918/policies", {**place, "statements": grants})
            for name in ("mine", "other"):
                admin.made(self.space, {"name": name, "compartmentId": cloud.compartment})
                assert admin.ask("PUT", f"{self.space}/{name}/o/a", raw=b"kept").status == 200
            self.upload = admin.made(f"{self.space}/mine/u", {"object": "b"})["uploadId"]

    def send(self, method: str, target: str, body: bytes = b"", *more: tuple[str, str], **how: Any) -> tuple[int, Any]:
        signed = self.signing.headers(method, target, body)
        asked = Asked("", method, target, raw=body, **how)
        status, content = self.wire.send(asked, (*signed.items(), *more))
        return status, json.loads(content) if content[:1] in (b"{", b"[") else content


@pytest.fixture(scope="module")
def sender(shared_cloud: Cloud) -> Iterator[_Sender]:
    made = _Sender(shared_cloud)
    yield made
    made.wire.close()


def test_a_repeated_query_parameter_is_refused(sender: _Sender) -> None:
    mine, other = sender.cloud.compartment, sender.cloud.tenancy
    for query in (f"compartmentId={mine}&compartmentId={other}", f"compartmentId={other}&%63ompartmentId={mine}"):
        status, answer = sender.send("GET", f"/20160918/vcns?{query}")
        assert (status, answer["code"]) == (400, "InvalidParameter")


@pytest.mark.parametrize("name", ["if-match", "OPC-Retry-Token", "opc-request-id", "X-Content-Sha256", "date"])
def test_a_repeated_header_is_refused(sender: _Sender, name: str) -> None:
    target = f"/20160918/vcns?compartmentId={sender.cloud.compartment}"
    more = [(name, "one"), (name.lower(), "two")]
    status, answer = sender.send("GET", target, b"", *more)
    assert (status, answer["code"]) == (400, "InvalidParameter")


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (lambda text: text[:-1] + b', "displayName": "twice"}', "CannotParseRequest"),
        (lambda text: text[:-1] + b', "\\u0064isplayName": "twice"}', "CannotParseRequest"),
        (lambda text: text.decode().encode("utf-16"), "CannotParseRequest"),
        (lambda text: text.decode().encode("utf-8-sig"), "CannotParseRequest"),
        (gzip.compress, "CannotParseRequest"),
    ],
    ids=["a key twice", "a key twice, escaped", "UTF-16", "BOM", "gzip"],
)
def test_a_body_with_two_readings_is_refused(sender: _Sender, written: Any, code: str) -> None:
    place = {"compartmentId": sender.cloud.compartment, "displayName": "once", "cidrBlocks": ["10.9.0.0/16"]}
    status, answer = sender.send(
        "POST", "/20160918/vcns", written(json.dumps(place).encode()), ("content-encoding", "gzip")
    )
    assert (status, answer["code"]) == (400, code)


def test_no_header_changes_the_method(sender: _Sender) -> None:
    target = f"{sender.space}/mine/o/a"
    for more in (("x-http-method-override", "DELETE"), ("x-method-override", "DELETE")):
        assert sender.send("GET", target, b"", more) == (200, b"kept")
    assert sender.send("GET", f"{target}?_method=DELETE") == (200, b"kept")


@pytest.mark.parametrize(
    "path", ["other%2fo%2fa", "mine/o/%2e%2e/%2e%2e/other/o/a", "mine%2f..%2fother/o/a", "mine/../other/o/a",
             "mine%c0%af..%c0%afother/o/a", "%6fther/o/a", "mine%00other/o/a", "mine;other/o/a", "MINE/o/a"],
)  # fmt: skip
def test_no_spelling_of_a_path_reaches_another_object(sender: _Sender, path: str) -> None:
    for method in ("GET", "DELETE"):
        status, answer = sender.send(method, f"{sender.space}/{path}")
        assert status in (400, 404), answer
    with closing(Caller(sender.cloud)) as admin:
        assert admin.ask("GET", f"{sender.space}/other/o/a").text == "kept"


def test_an_upload_is_reached_only_through_its_own_object(sender: _Sender) -> None:
    """An upload can be reached neither by its id with another object's name, nor from another bucket."""
    for place in ("mine/u/a", "other/u/b"):
        target = f"{sender.space}/{place}?uploadId={sender.upload}"
        for method, more in (("GET", ""), ("PUT", "&uploadPartNum=1"), ("POST", ""), ("DELETE", "")):
            body = b'{"partsToCommit": [{"partNum": 1, "etag": "x"}]}' if method == "POST" else b""
            assert sender.send(method, target + more, body)[0] == 404, (method, place)
    assert sender.send("GET", f"{sender.space}/mine/u/b?uploadId={sender.upload}")[0] == 200


def test_a_repository_name_in_a_registry_path_has_one_meaning(sender: _Sender) -> None:
    """Earlier, access to a repository with a tag or digest in its name was checked for a shorter name."""
    tool, space = Tool.signed_in(sender.cloud, "user"), sender.cloud.namespace
    for name in (f"{_MINE}:x", f"{_MINE}@x", f"{_MINE}:x/{_OTHER}", f"{_MINE}%2f..%2f{_OTHER}", f"{_MINE}/../other"):
        assert tool.ask("POST", f"/v2/{space}/{name}/blobs/uploads/").status == 404, name
    assert tool.ask("PUT", f"/v2/{space}/{_MINE}/manifests/other:1", b"{}").status == 404


def test_a_registry_upload_is_reached_only_through_its_own_repository(sender: _Sender) -> None:
    space, content = sender.cloud.namespace, b"layer"
    begun = Tool.signed_in(sender.cloud).ask("POST", f"/v2/{space}/{_OTHER}/blobs/uploads/").headers["location"]
    upload = begun.rpartition("/")[2]
    tool = Tool.signed_in(sender.cloud, "user")
    for method in ("PATCH", "PUT"):
        place = f"/v2/{space}/{_MINE}/blobs/uploads/{upload}?digest={digest_of(content)}"
        assert tool.ask(method, place, content).status == 404
        assert tool.ask(method, place.replace(_MINE, _OTHER), content).status == 403
    twice = f"/v2/{space}/{_MINE}/blobs/uploads/{upload}?digest={digest_of(content)}&digest=x"
    assert tool.ask("PUT", twice, content).status == 400


def test_a_body_with_two_lengths_is_not_read_as_two_requests(sender: _Sender) -> None:
    target = f"/20160918/vcns?compartmentId={sender.cloud.compartment}"
    hidden = f"DELETE {sender.space}/mine/o/a HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    for more in ([("content-length", "0")], [("content-length", str(len(hidden))), ("content-length", "0")]):
        status, _ = sender.send("GET", target, hidden, *more, is_chunked=len(more) == 1)
        assert status in (0, 200, 400)
    assert sender.send("GET", f"{sender.space}/mine/o/a") == (200, b"kept")


def test_a_login_with_two_names_is_refused(sender: _Sender) -> None:
    world = OpenPaiWorld(sender.cloud)
    password = world.accounts["passwords"]["user"]
    place, form = "/api/v2/authn/basic/login", "application/x-www-form-urlencoded"
    twice = f"username=user&password={password}&username=deployer"
    for body, kind in (
        (twice, form), (twice, f"{form.upper()}; charset=utf-16"), (f"username=%ff&password={password}", form),
        (f'{{"username": "user", "password": "{password}", "username": "deployer"}}', "application/json"),
    ):  # fmt: skip
        assert world.ask("POST", place, body.encode(), token="", kind=kind).status == 400, body
    told = {"username": "user", "password": password}
    answer = world.ask("POST", f"{place}?username=deployer", told, token="")
    assert (answer.status, answer.body["user"]) == (200, "user")
    token = answer.body["token"]
    assert world.ask("DELETE", f"/api/v2/tokens/{token}", token=token).status == 200
    assert token not in (sender.cloud.home / "server.log").read_text()
