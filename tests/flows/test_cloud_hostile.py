# SPDX-License-Identifier: Apache-2.0
"""Hostile requests are refused quickly and change nothing, and the cloud goes on.

Few tests with many attempts each: the attempts share one cloud.
"""

import http.client
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import oci
import psutil
import pytest

from localcloud import control
from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World, variables
from tests.support.network_world import ANYWHERE, SERVICES, Network, egress
from tests.support.registry_client import Tool, digest_of, manifest
from tests.support.signing import Signing
from tests.support.waiting import LONGEST_SECONDS, eventually

MEGABYTE = 1024 * 1024
# The server's processor time for one call of at most a megabyte. An idle machine needs a hundredth of it.
MOST_PROCESSOR_SECONDS = 2.0


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cloud with short timeouts, so that the tests are fast."""
    home = tmp_path_factory.mktemp("hostile") / "cloud"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRAINYARD_CLIENT_SECONDS", "3")
        try:
            yield control.start_cloud(home)
        finally:
            control.stop_cloud(home)


@pytest.fixture(scope="module")
def world(cloud: Cloud) -> World:
    return World(Clients(cloud))


@pytest.fixture(scope="module")
def bucket(world: World) -> str:
    details = oci.object_storage.models.CreateBucketDetails(name="hostile", compartment_id=world.compartment)
    world.clients.storage.create_bucket("trainyardlocal", details)
    return "/n/trainyardlocal/b/hostile"


class Caller:
    """Signed calls, byte by byte as they are given."""

    def __init__(self, cloud: Cloud, profile: str = "deployer") -> None:
        self.cloud = cloud
        self.signing = Signing(cloud, profile)

    def __call__(self, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.cloud.endpoint).netloc, timeout=LONGEST_SECONDS)
        signed = {**self.signing.headers(method, target, body), **{k.replace("_", "-"): v for k, v in headers.items()}}
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in signed.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        return response.status, json.loads(content) if content[:1] in (b"{", b"[", b'"') else content


def _processor(cloud: Cloud) -> float:
    used = psutil.Process(cloud.pid).cpu_times()
    return float(used.user + used.system)


def _connected(cloud: Cloud) -> socket.socket:
    address = urlsplit(cloud.endpoint)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=LONGEST_SECONDS)


_LONG = "9" * 5000
_PAGE = "WyJcdWQ4MDAiLCAiXHVkODAwIl0="  # ["\ud800", "\ud800"]


def test_invalid_numbers_and_texts_are_refused(cloud: Cloud, world: World, bucket: str) -> None:
    call, place = Caller(cloud), world.compartment
    vcns = f"/20160918/vcns?compartmentId={place}"
    hostile = [
        ("GET", f"{vcns}&limit={_LONG}"), ("GET", f"{vcns}&limit=%D9%A3"), ("GET", f"{vcns}&limit=1e3"),
        ("GET", f"{vcns}&page={_PAGE}"), ("GET", f"{vcns}&page=WzFlOTk5LCAieCJd"), ("GET", f"{vcns}&displayName=%FF"),
        ("GET", f"{vcns}&" + "&".join(f"a{number}=1" for number in range(300))),
        ("GET", f"{bucket}/o?limit={_LONG}"), ("GET", f"{bucket}/u?page={_PAGE}"),
        ("GET", f"/.trainyard/calls?since={_LONG}"), ("PUT", f"{bucket}/u/x?uploadId=x&uploadPartNum={_LONG}"),
    ]  # fmt: skip
    for method, target in hostile:
        status, answer = call(method, target)
        assert 400 <= status < 500, (target[:200], status, answer)
    bodies = [
        ('{"cidrBlocks": ["10.0.0.0/16"], "compartmentId": "%s", "displayName": %s}', 400),
        ('{"cidrBlocks": ["10.0.0.0/16"], "compartmentId": "%s", "freeformTags": {"a": %s}}', 400),
        ('{"cidrBlocks": ["10.0.0.0/16"], "compartmentId": "%s", "definedTags": {"a": {"b": %s}}}', 400),
    ]
    for template, wanted in bodies:
        for value in (_LONG, "1e999", "-1e999", "NaN", "Infinity", '"\\ud800"', "1" * 25, "[" * 100_000):
            status, answer = call("POST", "/20160918/vcns", (template % (place, value)).encode())
            assert status == wanted, (template, value[:40], status, answer)
    status, answer = call("POST", "/20160918/vcns", '{"compartmentId": "\\ud800"}'.encode("utf-16"))
    assert (status, answer["code"]) == (400, "CannotParseRequest")
    assert call("OPTIONS", "*")[0] == 400
    assert not [vcn for vcn in world.clients.network.list_vcns(place).data if vcn.display_name != "hostile"]


def test_a_refused_name_cannot_forge_a_log_line(cloud: Cloud, world: World) -> None:
    user = Caller(cloud, "user")
    name = "a\n2026-01-01 00:00:00 INFO GET /n 200 1.0ms GetNamespace by deployer\x1b[31m'\""
    details = {"name": name, "compartmentId": world.compartment}
    status, answer = user("POST", "/n/trainyardlocal/b", json.dumps(details).encode())
    assert (status, answer["code"]) == (404, "NotAuthorizedOrNotFound")
    for target in (f"/n/trainyardlocal/b/{quote(name, safe='')}", f"/n/trainyardlocal/b/x/o/{quote(name, safe='')}"):
        for method in ("GET", "PUT", "DELETE"):
            status, answer = user(method, target, b"content" if method == "PUT" else b"")
            assert status in (404, 400), answer
    lines = (cloud.home / "server.log").read_text().split("\n")
    assert not [line for line in lines if line.startswith("2026-01-01 00:00:00 INFO") or "\x1b" in line]


def test_objects_whose_names_differ_are_different_objects(cloud: Cloud, world: World, bucket: str) -> None:
    call, storage = Caller(cloud), world.clients.storage
    for raw in ("%FF", "%FE", "a%C3", "%ED%A0%80"):
        for method in ("PUT", "GET", "DELETE"):
            status, answer = call(method, f"{bucket}/o/{raw}", b"content" if method == "PUT" else b"")
            assert (status, answer["code"]) == (400, "InvalidParameter")
    names = [
        "folder",
        "folder/",
        "folder//",
        "/folder",
        "folder/%2F",
        "/",
        "//",
        "%",
        "%2F",
        "o/",
        "folder/é",
        "folder/x ",
    ]
    for name in names:
        for spelled in {quote(name), quote(name, safe="")}:
            status, answer = call("PUT", f"{bucket}/o/{spelled}", name.encode())
            assert status == 200, answer
    listed = storage.list_objects("trainyardlocal", "hostile").data.objects
    assert sorted(one.name for one in listed) == sorted(names)
    for name in names:
        assert storage.get_object("trainyardlocal", "hostile", name).data.content == name.encode()
        assert call("GET", f"{bucket}/o/{quote(name)}")[1] == name.encode()
    # As clients request lists, with a slash at the end.
    assert call("GET", f"{bucket}/o/")[1]["objects"]
    assert call("GET", "/n/")[1] == "trainyardlocal"


def test_a_hostile_manifest_is_refused_quickly_and_reaches_no_file(cloud: Cloud, world: World) -> None:
    tool, repository = Tool.signed_in(cloud), "trainyardlocal/hostile/image"
    config, put = b'{"config": {}}', f"/v2/{repository}/manifests/1"
    assert tool.put_blob(repository, config).status == 201
    blobs = cloud.home / "registry" / "blobs"
    fifo, link, folder = ("1" * 64, "2" * 64, "3" * 64)
    os.mkfifo(blobs / fifo)
    (blobs / link).symlink_to("/etc/hostname")
    (blobs / folder).mkdir()
    sound = json.loads(manifest(config, config))
    layer = sound["layers"][0]
    digests: list[Any] = [
        "../../../../../../etc/hostname", "/etc/hostname", "sha256:../../config", "", None, 7, [], {},
        f"sha256:{'A' * 64}", f"sha256:{'0' * 64}\n", *(f"sha256:{name}" for name in (fifo, link, folder)),
    ]  # fmt: skip
    hostile: list[Any] = [
        [], "x", 7, None, True, {}, {"config": []}, {"config": {"digest": {}}}, {**sound, "layers": {}},
        {**sound, "layers": [7]}, {**sound, "layers": [{**layer, "size": "1"}]},
        {**sound, "layers": [{**layer, "size": -1}]},
        {**sound, "layers": [{**layer, "size": 2**70}]}, {**sound, "layers": [{**layer, "size": True}]},
        {"manifests": []}, {"manifests": {}}, {"manifests": [7]},
        *({**sound, "config": {"digest": digest}} for digest in digests),
        *({**sound, "layers": [{**layer, "digest": digest}]} for digest in digests[:10]),
        *({"manifests": [{"digest": digest}]} for digest in digests),
    ]  # fmt: skip
    answers = [tool.ask("PUT", put, json.dumps(one).encode()) for one in hostile]
    answers += [tool.ask("PUT", put, raw) for raw in (b"[" * 200_000, b'{"config": 1e999}', b"\xff\xfe", b"9" * 5000)]
    starts: list[Any] = [{"config": 7}, {"config": {"Entrypoint": 7}}, {"config": {"Cmd": [7]}}, [], 7, "x"]
    for wrong in starts:
        described = json.dumps(wrong).encode()
        assert tool.put_blob(repository, described).status == 201
        answers.append(tool.ask("PUT", put, manifest(described, config)))
    for answer in answers:
        assert (answer.status, answer.code in ("MANIFEST_INVALID", "MANIFEST_BLOB_UNKNOWN")) == (400, True), answer
        assert socket.gethostname() not in answer.content.decode()
    artifacts = world.clients.artifacts
    assert not artifacts.list_container_images(cloud.tenancy, compartment_id_in_subtree=True).data.items
    assert tool.ask("PUT", put, manifest(config, config)).status == 201, "and a sound one is taken"
    assert tool.ask("GET", f"/v2/{repository}/blobs/{digest_of(config)}").content == config
    file = blobs / digest_of(config).removeprefix("sha256:")
    in_its_place: tuple[Callable[[], None], ...] = (
        lambda: os.mkfifo(file), lambda: file.symlink_to("/etc/hostname"), lambda: file.mkdir(),
    )  # fmt: skip
    for take in in_its_place:
        file.unlink() if not file.is_dir() else file.rmdir()
        take()
        for kind in ("blobs", "manifests"):
            assert tool.ask("GET", f"/v2/{repository}/{kind}/{digest_of(config)}").status == 404
        assert tool.ask("PUT", put, manifest(config, config)).status == 400


def test_processor_time_of_a_call_is_proportional_to_its_size(cloud: Cloud, world: World) -> None:
    """Measured by the server's processor time, on which other load has little effect."""
    deployer, user = Caller(cloud), Caller(cloud, "user")
    network = f"/20160918/vcns/{world.vcn.id}"
    long = "allow group x to use y in tenancy where " + "all {" * 20_000
    span = {"timeStart": "2026-01-01T00:00:00Z", "timeEnd": "2026-01-02T00:00:00Z"}
    searches = [piece * (75_000 // len(piece)) for piece in ("|'", "'", '|"', " |", "a='b' and ", '"a"|')]
    attempts = [
        *((user, "POST", "/20190909/search", {**span, "searchQuery": text}) for text in searches),
        *((deployer, "POST", "/20190909/search", {**span, "searchQuery": f'search "x" {text}'}) for text in searches),
        (deployer, "POST", "/20180401/metrics/actions/summarizeMetricsData?compartmentId=x",
         {"namespace": "a_b", "query": "a[1m]" + " " * 75_000 + "x"}),
        (deployer, "PUT", network, {"a" * 500_000: 1}),
        (deployer, "PUT", network, {"freeformTags": {str(number): "x" for number in range(50_000)}}),
        (deployer, "PUT", network, {"displayName": ["x"] * 100_000}),
        (deployer, "POST", "/20160918/policies", {"statements": ["allow " + "x," * 200_000], "name": "p",
         "compartmentId": cloud.tenancy, "description": "d"}),
        (deployer, "POST", "/20160918/policies", {"statements": [long], "name": "p",
         "compartmentId": cloud.tenancy, "description": "d"}),
        (deployer, "POST", "/20160918/dynamicGroups", {"matchingRule": "any {" * 20_000, "name": "p",
         "compartmentId": cloud.tenancy, "description": "d"}),
        (deployer, "POST", "/20160918/securityLists", {"compartmentId": world.compartment, "vcnId": world.vcn.id,
         "egressSecurityRules": [], "ingressSecurityRules": [{"protocol": "6" * 100_000, "source": "1" * 100_000}]}),
    ]  # fmt: skip
    for caller, method, target, details in attempts:
        before = _processor(cloud)
        status, answer = caller(method, target, json.dumps(details).encode())
        took = _processor(cloud) - before
        assert status != 500, (target, answer)
        assert took < MOST_PROCESSOR_SECONDS, (target, str(details)[:80], took)
    for header in (
        f"Signature {'a' * 60_000}",
        "Signature " + 'a="b",' * 9_000,
        "a" * 60_000,
        "Signature " + " " * 60_000,
    ):
        before = _processor(cloud)
        with _connected(cloud) as connection:
            connection.sendall(f"GET /n HTTP/1.1\r\nHost: x\r\nAuthorization: {header}\r\n\r\n".encode())
            assert connection.recv(4096).split(b" ")[1] == b"401"
        assert _processor(cloud) - before < MOST_PROCESSOR_SECONDS, header[:40]
    for date in (
        "9" * 50_000,
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 99 Jan 2026 99:99:99 GMT",
        "\xff",
    ):
        with _connected(cloud) as connection:
            signed = deployer.signing.headers("GET", "/n") | {"date": date}
            lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
            connection.sendall(f"GET /n HTTP/1.1\r\n{lines}\r\n".encode("latin-1"))
            assert connection.recv(4096).split(b" ")[1] == b"401", date[:40]


def _ended(connection: socket.socket) -> bytes:
    """Everything that the server sent until it closed the connection."""
    said = b""
    try:
        while chunk := connection.recv(65536):
            said += chunk
    except ConnectionError:
        pass
    return said


def test_half_open_connections_are_closed(cloud: Cloud, bucket: str) -> None:
    signing = Signing(cloud)
    target = f"{bucket}/o/slow"
    signed = signing.headers("PUT", target, b"x" * 1000)
    head = f"PUT {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    finished = "".join(f"{name}: {value}\r\n" for name, value in signing.headers("GET", "/n").items())
    beginnings = {
        "nothing": b"",
        "half a line": b"GET /n HT",
        "half a head": b"GET /n HTTP/1.1\r\nHost: x\r\nA: b",
        "half a body": f"{head}\r\nonly this".encode(),
        "half a second head": f"GET /n HTTP/1.1\r\n{finished}\r\nGET /n HTTP/1.1\r\nHo".encode(),
    }
    begun = time.monotonic()
    opened = {name: _connected(cloud) for name in beginnings}
    try:
        for name, text in beginnings.items():
            opened[name].sendall(text)
        said = {name: _ended(connection) for name, connection in opened.items()}
    finally:
        for connection in opened.values():
            connection.close()
    assert time.monotonic() - begun < 50, "the server ends them before it would for being idle"
    assert said.pop("half a body").split(b" ")[1] == b"408"
    assert said.pop("half a second head").split(b" ")[1] == b"200"
    assert set(said.values()) == {b""}
    incoming = cloud.home / "objects" / "incoming"
    eventually(lambda: list(incoming.iterdir()), lambda found: not found)


def test_a_body_that_trickles_in_times_out(cloud: Cloud, bucket: str) -> None:
    signing = Signing(cloud)
    target = f"{bucket}/o/trickle"
    signed = signing.headers("PUT", target, b"x" * MEGABYTE)
    lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    with _connected(cloud) as connection:
        connection.sendall(f"PUT {target} HTTP/1.1\r\n{lines}\r\n".encode())
        connection.settimeout(0.2)
        deadline, said = time.monotonic() + LONGEST_SECONDS, b""
        while not said and time.monotonic() < deadline:
            try:
                connection.sendall(b"x")
                said = connection.recv(65536)
            except TimeoutError:
                continue
        assert said.split(b" ")[1] == b"408"


@pytest.mark.parametrize("asks_first", [False, True])
def test_a_refused_upload_is_not_received(cloud: Cloud, bucket: str, asks_first: bool) -> None:
    """Both for a client that waits for `100 Continue`, and for one that sends at once."""
    size = 64 * MEGABYTE
    signing = Signing(cloud, "user")
    targets = [f"{bucket}/o/refused", f"{bucket}/u/refused?uploadId=x&uploadPartNum=1", "/20190101/jobs/x/artifact"]
    for target in targets:
        method = "POST" if "artifact" in target else "PUT"
        signed = signing.without_body(method, target) | {"content-length": str(size)}
        signed |= {"expect": "100-continue"} if asks_first else {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        sent = 0
        with _connected(cloud) as connection:
            connection.sendall(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode())
            if not asks_first:
                try:
                    while sent < size:
                        sent += connection.send(b"\0" * MEGABYTE)
                except ConnectionError:
                    pass
            said = b""
            try:
                said = connection.recv(65536)
            except ConnectionError:
                assert not asks_first
        assert sent < size / 2, "the server took what it had refused"
        assert not said or said.split(b" ")[1] == b"404", said[:200]
        assert said or not asks_first


@pytest.mark.parametrize("length", ["content-length: 4\r\ncontent-length: 5", "content-length: x", "content-length 4"])
def test_a_malformed_request_head_gets_an_error_response(cloud: Cloud, length: str) -> None:
    """Also if the client is already sending the body: if a connection is closed with unread data, the response is
    lost."""
    with _connected(cloud) as connection:
        connection.sendall(f"PUT /n HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n".encode() + b"\0" * (MEGABYTE // 2))
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while chunk := connection.recv(65536):
            said += chunk
    assert said.split(b" ")[1] == b"400", said[:200]


def test_the_sdk_gets_the_reason_of_a_refused_upload(cloud: Cloud, bucket: str) -> None:
    with pytest.raises(oci.exceptions.ServiceError) as refused:
        Clients(cloud, "user").storage.put_object("trainyardlocal", "hostile", "refused", b"\0" * 8 * MEGABYTE)
    assert (refused.value.status, refused.value.code) == (404, "NotAuthorizedOrNotFound")


_CONSOLE = """
import http.client
port = int(os.environ['CLOUD_PORT'])
for address in ('198.51.100.1', '198.51.100.2'):
    for host in (f'127.0.0.1:{port}', f'localhost:{port}', address):
        for path in ('/console', '/console/data', '/console/page.js'):
            connection = http.client.HTTPConnection(address, 443, timeout=20)
            connection.putrequest('GET', path, skip_host=True)
            connection.putheader('Host', host)
            connection.endheaders()
            answer = connection.getresponse()
            tell(answer.status, b'tenancy' in answer.read())
"""


def test_a_node_does_not_read_the_console(cloud: Cloud, world: World) -> None:
    network = Network(world, "10.1.0.0/16")
    subnet = network.subnet("10.1.1.0/24", [], [egress("all", ANYWHERE)])
    network.route(SERVICES, network.service_gateway())
    port = cloud.endpoint.rpartition(":")[2]
    run = network.run(_CONSOLE, subnet, CLOUD_PORT=port)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert world.lines(run) == ["404 False"] * 18
    # Without a subnet, a run reaches the cloud on its own loopback, at the address that people use.
    script = "import os\ndef tell(*words): print(*words, flush=True)\n" + _CONSOLE
    alone = world.run(
        world.job(script.replace("'198.51.100.1', '198.51.100.2'", "'127.0.0.1',").replace("443", "port")),
        **variables(CLOUD_PORT=port),
    )
    assert world.finished(alone).lifecycle_state == "SUCCEEDED", world.lines(alone)
    assert world.lines(alone) == ["404 False"] * 9
    connection = http.client.HTTPConnection(urlsplit(cloud.endpoint).netloc, timeout=LONGEST_SECONDS)
    connection.request("GET", "/console")
    assert connection.getresponse().status == 200
    connection.close()


def test_the_server_process_survives_all_of_these_requests(cloud: Cloud) -> None:
    again = control.find_running_cloud(Path(cloud.home))
    assert again is not None
    assert again.pid == cloud.pid
    assert Clients(cloud).storage.get_namespace().data == "trainyardlocal"
    assert "Traceback" not in (cloud.home / "server.log").read_text()
