# SPDX-License-Identifier: Apache-2.0
"""Reads and changes on the local AWS, against moto's own server: the same requests to both, with ten objects of a kind.

moto's server verifies no signatures, checks no access, and keeps its state in memory. The difference is our overhead.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from itertools import cycle
from urllib.parse import urlencode

from bench.harness.rows import TURNS, Aim, Row
from bench.harness.servers import PreparedRequest, Server, Timed, call_row, compared, moto_server
from launcher.aws_dl1.fetch import Credentials, signed
from localcloud.aws import account
from localcloud.control import Cloud

OBJECTS = 10
MANY_OBJECTS = 10_000
CALLS = 40
AIM = Aim("ratio", 1.3)
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_VERSIONS = {"ec2": "2016-11-15", "iam": "2010-05-08"}
_TRUST = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
]})  # fmt: skip


def rows(cloud: Cloud) -> list[Row]:
    """A row for each kind of call."""
    key = account.load_keys(cloud.home)["deployer"]
    with moto_server(Server) as peer:
        ours, moto = Timed(Server(cloud.endpoint, cloud.pid)), Timed(peer)
        asks = _SignedRequests(ours.server.address, Credentials(key.id, key.secret))
        sides = [(side, _prepared(side.server, asks)) for side in (ours, moto)]
        for turn in range(TURNS):
            for side, addresses in sides:
                for what, requests in asks.turn(turn, addresses).items():
                    side.time(what, requests)
        return [*compared(ours, moto, AIM), *_with_many_objects(ours, asks)]


def _with_many_objects(ours: Timed[Server], asks: _SignedRequests) -> Iterator[Row]:
    """Repeats the calls on objects when the bucket has thousands: each call must cost the same as before."""
    for asked in asks.more_objects():
        ours.server.send(asked)
    for what in asks.of_objects(0):
        name = f"{what} of {MANY_OBJECTS:,}"
        for turn in range(TURNS, 2 * TURNS):
            ours.time(name, asks.of_objects(turn)[what])
        yield call_row(name, ours.took[name], ours.took[what], f"of {OBJECTS}", AIM)


def _prepared(server: Server, asks: _SignedRequests) -> list[str]:
    """Makes ten objects of each kind. Returns the ids of the addresses, which each server chooses."""
    answers = b"".join(server.send(asked) for asked in asks.preparation())
    return sorted(set(re.findall(r"eipalloc-\w+", answers.decode())))


class _SignedRequests:
    """Makes requests that are signed for our server. moto's server accepts them too."""

    def __init__(self, host: str, credentials: Credentials) -> None:
        self._host, self._credentials = host, credentials

    def preparation(self) -> Iterator[PreparedRequest]:
        yield self._signed("s3", "PUT", "/bench")
        for number in range(OBJECTS):
            yield self._object("PUT", number, b"content")
            yield self._query("iam", "CreateRole", RoleName=f"role-{number}", AssumeRolePolicyDocument=_TRUST)
            yield self._query("ec2", "AllocateAddress", Domain="vpc")

    def turn(self, turn: int, addresses: list[str]) -> Mapping[str, list[PreparedRequest]]:
        """The requests of one round. Each change has a new value, because an equal value would not be written."""
        numbers = [turn * CALLS + number for number in range(CALLS)]
        roles = [(f"role-{number % OBJECTS}", str(number)) for number in numbers]
        return {
            "IAM: get a role": [self._query("iam", "GetRole", RoleName=role) for role, _ in roles],
            "IAM: tag a role": [
                self._query(
                    "iam", "TagRole", RoleName=role, **{"Tags.member.1.Key": "n", "Tags.member.1.Value": number}
                )
                for role, number in roles
            ],
            "EC2: list ten addresses": [self._query("ec2", "DescribeAddresses") for _ in numbers],
            "EC2: tag an address": [
                self._query("ec2", "CreateTags", **{"ResourceId.1": one, "Tag.1.Key": "n", "Tag.1.Value": str(number)})
                for number, one in zip(numbers, cycle(addresses), strict=False)
            ],
            **self.of_objects(turn),
        }

    def of_objects(self, turn: int) -> Mapping[str, list[PreparedRequest]]:
        numbers = [turn * CALLS + number for number in range(CALLS)]
        return {
            "S3: get an object": [self._object("GET", number % OBJECTS) for number in numbers],
            "S3: put an object": [self._object("PUT", number % OBJECTS, str(number).encode()) for number in numbers],
        }

    def more_objects(self) -> Iterator[PreparedRequest]:
        return (self._object("PUT", number, b"content") for number in range(OBJECTS, MANY_OBJECTS))

    def _object(self, method: str, number: int, content: bytes = b"") -> PreparedRequest:
        return self._signed("s3", method, f"/bench/object-{number}", content)

    def _query(self, service: str, action: str, **parameters: str) -> PreparedRequest:
        body = urlencode({"Action": action, "Version": _VERSIONS[service], **parameters}).encode()
        return self._signed(service, "POST", "/", body, _FORM)

    def _signed(
        self, service: str, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> PreparedRequest:
        digest = hashlib.sha256(body).hexdigest()
        named = signed(method, self._host, target, headers or {}, digest, service, account.REGION, self._credentials,
                       time.time())  # fmt: skip
        return PreparedRequest(method, target, body, named)
