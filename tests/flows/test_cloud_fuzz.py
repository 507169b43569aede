# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to every operation of the local cloud. No request gets a 500 or more processor time than its size
justifies. A refused request changes nothing. The same server answers afterwards.
"""

import contextlib
import hashlib
import http.client
import json
import sqlite3
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import oci
import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from localcloud import admin, control
from localcloud.control import Cloud
from tests.flows.hostile_requests import ROWS, Hostile, hostile, parameters
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.counts import wanted
from tests.support.network_world import Network
from tests.support.signing import Signing
from tests.support.waiting import LONGEST_SECONDS

core = oci.core.models

REQUESTS = wanted(sample=600, full=50_000)
# The server's processor time for one call. On a slow machine, most of it is for the key of a new run.
MOST_SECONDS, SECONDS_A_BYTE = 3.0, 20e-6
# Background work: runs end, and their output is stored.
_ALIVE = "('job-run', 'vnic', 'private-ip')"
_STATE = (
    f"SELECT id, etag, live FROM resources WHERE kind NOT IN {_ALIVE} ORDER BY sequence",
    "SELECT bucket, name, etag FROM objects",
    "SELECT file, marker FROM versions",
    "SELECT id FROM uploads",
    "SELECT upload, number, etag FROM parts",
)


class Attacker:
    """Sends requests, and looks at the server's state and processor time before and after each."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.real: list[str] = []
        self._signing = {name: Signing(cloud, name) for name in ("deployer", "user")}
        self._server = psutil.Process(cloud.pid)
        self._known: tuple[int, str] = (-1, "")

    @cached_property
    def _store(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.cloud.home / 'state.sqlite3'}?mode=ro", uri=True, isolation_level=None)

    def close(self) -> None:
        self._store.close()

    def state(self) -> str:
        """A digest of everything that only calls change. It is computed again only if something was written."""
        ((version,),) = self._store.execute("PRAGMA data_version").fetchall()
        if version != self._known[0]:
            digest = hashlib.sha256()
            for query in _STATE:
                for row in self._store.execute(query):
                    digest.update(repr(row).encode(errors="replace"))
            self._known = version, digest.hexdigest()
            newest = self._store.execute("SELECT id FROM resources WHERE live ORDER BY sequence DESC LIMIT 300")
            self.real = [*sorted(row[0] for row in newest), self.cloud.compartment, self.cloud.tenancy]
        return self._known[1]

    def processor(self) -> float:
        used = self._server.cpu_times()
        return float(used.user + used.system)

    def send(self, request: Hostile) -> tuple[int, int]:
        """The status of the response, and the size of the request."""
        method, target, body = request.row.method, request.target(self.real), request.content(self.real)
        signing = self._signing["deployer" if request.is_administrator else "user"]
        signed = signing.without_body(method, target) if request.row.streams else signing.headers(method, target, body)
        headers = {**request.headers, **signed}
        if body or method in ("PUT", "POST"):
            headers["content-length"] = str(len(body))
        status = self._exchanged(method, target, headers, body)
        return status, len(target) + len(body) + sum(len(name) + len(value) for name, value in headers.items())

    def _exchanged(self, method: str, target: str, headers: dict[str, str], body: bytes) -> int:
        connection = http.client.HTTPConnection(urlsplit(self.cloud.endpoint).netloc, timeout=LONGEST_SECONDS)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            with contextlib.suppress(
                ConnectionError
            ):  # The server closed the connection early; its response can still be read.
                connection.endheaders(body)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()


def furnish(cloud: Cloud) -> None:
    """Makes a resource of most kinds, so that many requests name an existing one."""
    world = World(Clients(cloud))
    network, place = world.clients.network, {"compartment_id": world.compartment, "vcn_id": world.vcn.id}
    Network(world).service_gateway()
    network.create_subnet(core.CreateSubnetDetails(**place, cidr_block="10.0.9.0/24"))
    network.create_network_security_group(core.CreateNetworkSecurityGroupDetails(**place))
    details = oci.object_storage.models.CreateBucketDetails(name="name", compartment_id=world.compartment)
    world.clients.storage.create_bucket(cloud.namespace, details)
    world.clients.storage.put_object(cloud.namespace, "name", "name", b"content")
    admin.push_image(cloud, "iad.ocir.io/trainyardlocal/team/x:1")
    world.job("print('done')")


@pytest.fixture(scope="module")
def attacker(shared_cloud: Cloud) -> Iterator[Attacker]:
    furnish(shared_cloud)
    made = Attacker(shared_cloud)
    yield made
    made.close()


def _share(service: str) -> int:
    return max(10, REQUESTS * sum(row.service == service for row in ROWS) // len(ROWS))


@pytest.mark.parametrize("service", sorted({row.service for row in ROWS}))
def test_every_generated_request_is_answered_or_refused(attacker: Attacker, service: str) -> None:
    rows = [row for row in ROWS if row.service == service]

    # Hypothesis does not shrink requests, because their effect depends on earlier requests.
    @settings(max_examples=_share(service), phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(hostile(rows))
    def holds(request: Hostile) -> None:
        before, used = attacker.state(), attacker.processor()
        status, size = attacker.send(request)
        took = attacker.processor() - used
        told = f"{request.row.name} {status}: {request}"
        assert status < 500, told
        assert took < MOST_SECONDS + size * SECONDS_A_BYTE, f"{took:.1f} s for {size} bytes: {told}"
        assert status < 400 or attacker.state() == before, f"refused, and yet something changed: {told}"
        assert not list((attacker.cloud.home / "objects" / "incoming").iterdir()), told

    holds()
    _is_whole(attacker.cloud)


def _is_whole(cloud: Cloud) -> None:
    again = control.find_running_cloud(Path(cloud.home))
    assert again is not None
    assert again.pid == cloud.pid
    connection = sqlite3.connect(f"file:{cloud.home / 'state.sqlite3'}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()
    assert "Traceback" not in (cloud.home / "server.log").read_text(errors="replace")


def test_the_generator_knows_the_names_of_the_sdk() -> None:
    """Without the SDK's own names, the requests would find little."""
    named = {row.name: parameters(row) for row in ROWS}
    assert {"compartmentId", "limit", "page"} <= named["ListVcns"][0]
    assert {"if-match", "opc-retry-token"} & named["CreateVcn"][1]
    assert sum(bool(query | headers) for query, headers in named.values()) > len(ROWS) * 0.8


@given(st.data())
@settings(max_examples=20)
def test_every_generated_request_can_be_sent(data: st.DataObject) -> None:
    request = data.draw(hostile(ROWS))
    assert request.target(["ocid1.x"]).isascii()
    assert isinstance(request.content(["ocid1.x"]), bytes)
    json.dumps(dict(request.headers))
