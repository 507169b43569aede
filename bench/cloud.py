# SPDX-License-Identifier: Apache-2.0
"""Time per call and memory of the local cloud, against moto's server with similar calls, measured alternately.

Both get requests that are prepared before the measurement, over one keep-alive connection of a plain HTTP client, so
that no SDK is measured; the SDK's cost has a row of its own. Our server verifies a signature, checks access and commits
to disk; moto's does none of these. The rows of AWS (bench/harness/aws_calls.py) send the same requests to both, because
our local AWS is built on moto. A figure is milliseconds of wall time per call. A ratio compares processor time of the
servers, which limits their rates, and on which other work on the machine has little effect.
"""

from __future__ import annotations

import configparser
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from bench.harness import aws_calls
from bench.harness.rows import TURNS, Aim, Row, in_turns, spent
from bench.harness.servers import PreparedRequest, Server, Timed, compared, moto_server
from localcloud import control
from localcloud.oci.authentication import sign_request
from localcloud.oci.tenancy import load_private_key

MANY = 1000  # objects in each list
SHARE = MANY // TURNS
LISTS = 4
# Three times moto's rate, half its memory.
AIM_TIME, AIM_MEMORY, AIM_START = 1 / 3, 0.5, 0.6
_AWS = "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"


class Ours(Server):
    def __init__(self, cloud: control.Cloud) -> None:
        super().__init__(cloud.endpoint, cloud.pid)
        self._compartment, self._space = cloud.compartment, f"/n/{cloud.namespace}/b"
        profile = configparser.ConfigParser()
        profile.read(cloud.config_file)
        deployer = profile["deployer"]
        self._key = load_private_key(Path(deployer["key_file"]))
        self._key_id = f"{deployer['tenancy']}/{deployer['user']}/{deployer['fingerprint']}"

    def _request(self, method: str, target: str, body: object = None) -> PreparedRequest:
        content = json.dumps(body).encode() if body is not None else b""
        return PreparedRequest(
            method, target, content, sign_request(method, target, self.address, content, self._key_id, self._key)
        )

    def create_network(self, number: int) -> PreparedRequest:
        body = {"compartmentId": self._compartment, "cidrBlocks": ["10.0.0.0/16"], "displayName": f"n{number}"}
        return self._request("POST", "/20160918/vcns", body)

    def network_id(self, created: bytes) -> str:
        return str(json.loads(created)["id"])

    def get_network(self, identifier: str) -> PreparedRequest:
        return self._request("GET", f"/20160918/vcns/{identifier}")

    def list_networks(self) -> PreparedRequest:
        return self._request("GET", f"/20160918/vcns?compartmentId={self._compartment}&limit={MANY}")

    def delete_network(self, identifier: str) -> PreparedRequest:
        return self._request("DELETE", f"/20160918/vcns/{identifier}")

    def create_bucket(self, name: str) -> PreparedRequest:
        return self._request("POST", self._space, {"compartmentId": self._compartment, "name": name})

    def get_bucket(self, name: str) -> PreparedRequest:
        return self._request("GET", f"{self._space}/{name}")

    def list_buckets(self) -> PreparedRequest:
        return self._request("GET", f"{self._space}?compartmentId={self._compartment}&limit={MANY}")

    def delete_bucket(self, name: str) -> PreparedRequest:
        return self._request("DELETE", f"{self._space}/{name}")


class Moto(Server):
    def _ec2(self, action: str, **values: str) -> PreparedRequest:
        body = urlencode({"Action": action, "Version": "2016-11-15", **values}).encode()
        kind = "application/x-www-form-urlencoded"
        return PreparedRequest("POST", "/", body, {"authorization": _AWS.format("ec2"), "content-type": kind})

    def _s3(self, method: str, target: str) -> PreparedRequest:
        return PreparedRequest(method, target, b"", {"authorization": _AWS.format("s3")})

    def create_network(self, number: int) -> PreparedRequest:
        return self._ec2("CreateVpc", CidrBlock="10.0.0.0/16")

    def network_id(self, created: bytes) -> str:
        found = re.search(rb"<vpcId>(vpc-\w+)</vpcId>", created)
        assert found, created
        return found[1].decode()

    def get_network(self, identifier: str) -> PreparedRequest:
        return self._ec2("DescribeVpcs", **{"VpcId.1": identifier})

    def list_networks(self) -> PreparedRequest:
        return self._ec2("DescribeVpcs")

    def delete_network(self, identifier: str) -> PreparedRequest:
        return self._ec2("DeleteVpc", VpcId=identifier)

    def create_bucket(self, name: str) -> PreparedRequest:
        return self._s3("PUT", f"/{name}")

    def get_bucket(self, name: str) -> PreparedRequest:
        return self._s3("GET", f"/{name}?versioning")

    def list_buckets(self) -> PreparedRequest:
        return self._s3("GET", "/")

    def delete_bucket(self, name: str) -> PreparedRequest:
        return self._s3("DELETE", f"/{name}")


@dataclass
class Side(Timed[Ours | Moto]):
    """One server, and the objects that were made in it."""

    networks: list[str] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)

    def make(self) -> None:
        """Creates and reads a share of the objects."""
        server, share = self.server, range(len(self.networks), len(self.networks) + SHARE)
        made = self.time("create a network", [server.create_network(number) for number in share])
        fresh = [server.network_id(answer) for answer in made]
        self.networks += fresh
        self.time("get a network", [server.get_network(one) for one in fresh])
        names = [f"bucket-{number}" for number in share]
        self.buckets += names
        self.time("create a bucket", [server.create_bucket(name) for name in names])
        self.time("get a bucket", [server.get_bucket(name) for name in names])

    def list_all(self) -> None:
        self.time(f"list {MANY} networks", [self.server.list_networks()] * LISTS)
        self.time(f"list {MANY} buckets", [self.server.list_buckets()] * LISTS)

    def delete(self) -> None:
        """Deletes a share of the objects."""
        doomed = [self.networks.pop() for _ in range(SHARE)]
        self.time("delete a network", [self.server.delete_network(one) for one in doomed])
        emptied = [self.buckets.pop() for _ in range(SHARE)]
        self.time("delete a bucket", [self.server.delete_bucket(name) for name in emptied])


def rows() -> list[Row]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trainyard-bench-")))
        cold = _cold_start(folder)
        cloud = control.start_cloud(folder / "cloud")
        stack.callback(control.stop_cloud, folder / "cloud")
        client = _client(cloud)
        ours, moto = Side(Ours(cloud)), Side(stack.enter_context(moto_server(Moto)))
        for step in (*[Side.make] * TURNS, Side.list_all, *[Side.delete] * TURNS):
            for side in (ours, moto):
                step(side)
        memory = _memory(ours, moto)  # before the local AWS is used: it loads moto's packages into our server
        of_aws = aws_calls.rows(cloud)
        return [*compared(ours, moto, Aim("ratio", AIM_TIME)), memory, *of_aws, cold, client]


def _memory(ours: Side, moto: Side) -> Row:
    mine, theirs = ours.server.memory(), moto.server.memory()
    return Row("memory, resident", mine, "MB", "moto", theirs, mine / theirs, Aim("ratio", AIM_MEMORY))


def _cold_start(folder: Path) -> Row:
    """The time to the first answer of a cloud that has its keys, against a process that only does the imports."""
    home = folder / "cold"
    control.start_cloud(home)
    control.stop_cloud(home)
    imports = [sys.executable, "-c", "import localcloud.serve as server; [*server.server_parts()]"]
    ours, floor = in_turns(lambda: _started(home), lambda: spent(imports).clock)
    mine, other = min(ours), min(floor)
    return Row("cold start", mine, "s", "the same imports", other, mine / other, Aim("figure", AIM_START))


def _started(home: Path) -> float:
    start = time.perf_counter()
    control.start_cloud(home)
    seconds = time.perf_counter() - start
    control.stop_cloud(home)
    return seconds


def _client(cloud: control.Cloud) -> Row:
    """A read through the official SDK, against the same request sent by the plain client."""
    import oci

    config = oci.config.from_file(str(cloud.config_file))
    network = oci.core.VirtualNetworkClient(config, service_endpoint=cloud.endpoint)
    server = Ours(cloud)
    made = server.network_id(server.send(server.create_network(0)))
    requests = [server.get_network(made)] * SHARE
    sdk, plain = in_turns(
        lambda: _milliseconds(lambda: network.get_vcn(made), SHARE // 4),
        lambda: _milliseconds(lambda: server.send(requests[0]), SHARE),
    )
    server.send(server.delete_network(made))
    mine, other = statistics.median(sdk), statistics.median(plain)
    return Row("a read through the SDK", mine, "ms", "sent plainly", other, mine / other)


def _milliseconds(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1000
