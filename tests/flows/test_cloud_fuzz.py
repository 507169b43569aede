# SPDX-License-Identifier: Apache-2.0
"""Nonsense at every operation of the local cloud: refused, never a 500, and the state stays whole."""

import base64
import http.client
import json
import random
import re
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import oci
import pytest

from localcloud.api import sdk
from localcloud.api.operations import Operation
from localcloud.api.services import tables
from localcloud.api.signatures import sign
from localcloud.api.tenancy import load_private_key
from localcloud.control import Cloud
from tests.cloud_fixture import LONGEST_SECONDS
from tests.counts import wanted

ROUNDS = wanted(sample=4, full=60)
ROWS = tables.operations()
_ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e300,
    "",
    "x",
    "\x00",
    "ü" * 300,
    [],
    {},
    [[]],
    {"a": {"b": []}},
    "../..",
    "ocid1.x",
    "\ud800",
    10**40,
    "9" * 5000,
)
_PAGES = tuple(
    base64.urlsafe_b64encode(text.encode()).decode()
    for text in (
        "[1e400]",
        "[1e400, 1]",
        f"[{10**30}]",
        f'[{10**30}, "x"]',
        "[null]",
        '[[], "x"]',
        "[-5]",
        "[true]",
        "{}",
    )
)


class Sender:
    """One signed connection; the fuzz knows some identifiers that are real."""

    def __init__(self, cloud: Cloud) -> None:
        profile = oci.config.from_file(str(cloud.config_file), "deployer")
        self._key_id = f"{profile['tenancy']}/{profile['user']}/{profile['fingerprint']}"
        self._key = load_private_key(Path(profile["key_file"]))
        self._host = urlsplit(cloud.endpoint).netloc
        self.real = [cloud.tenancy, cloud.compartment, cloud.namespace]

    def send(self, method: str, target: str, body: bytes) -> int:
        connection = http.client.HTTPConnection(self._host, timeout=LONGEST_SECONDS)
        try:
            headers = sign(method, target, self._host, body, self._key_id, self._key)
            connection.request(method, target, body or None, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status < 300 and answer.startswith(b"{"):
            self.real += re.findall(r'"id":"(ocid1[^"]+)"', answer.decode())
        return response.status


@pytest.fixture(scope="module")
def sender(shared_cloud: Cloud) -> Sender:
    return Sender(shared_cloud)


def _value(type_name: str, service: str, chance: random.Random, real: list[str], depth: int = 0) -> Any:
    if chance.random() < 0.2 or depth > 4:
        return chance.choice(_ODD)
    if match := re.fullmatch(r"list\[(.+)\]", type_name):
        return [_value(match[1], service, chance, real, depth + 1) for _ in range(chance.randrange(3))]
    if match := re.fullmatch(r"dict\(str, (.+)\)", type_name):
        return {"k": _value(match[1], service, chance, real, depth + 1)}
    plain = {"int": 7, "float": 0.5, "bool": True, "datetime": "2026-01-01T00:00:00Z", "object": {}}
    if type_name == "str":
        return chance.choice([*real[-20:], *real[:3], "10.0.0.0/16", "10.0.1.0/24", "DEFAULT", "name", "Enabled"])
    return plain[type_name] if type_name in plain else _body(service, type_name, chance, real, depth + 1)


def _body(service: str, model: str, chance: random.Random, real: list[str], depth: int = 0) -> dict[str, Any]:
    fields = sdk.model(service, model).fields.values()
    return {
        field.wire: chance.choice(sorted(field.allowed))
        if field.allowed and chance.random() < 0.8
        else _value(field.type, service, chance, real, depth)
        for field in fields
        if field.required or chance.random() < 0.4
    }


def _target(row: Operation, chance: random.Random, real: list[str]) -> str:
    path = re.sub(r"\{\w+\}", lambda _: quote(str(chance.choice([*real, "x", "../x", "\x00", "ü"])), safe=""), row.path)
    names = (
        "compartmentId",
        "limit",
        "page",
        "sortBy",
        "sortOrder",
        "displayName",
        "vcnId",
        "x-y",
        "prefix",
        "delimiter",
        "fields",
        "start",
        "uploadId",
        "uploadPartNum",
        "versionId",
        "versionNumber",
        "stage",
        "serviceName",
        "subnetId",
        "vnicId",
        "userId",
        "lifecycleState",
        "isEnabled",
    )
    query = "&".join(
        f"{name}={quote(str(chance.choice([*real, '', '5', 'ASC', '%', '[', '9' * 30, *_PAGES])), safe='')}"
        for name in names
        if chance.random() < 0.2
    )
    return f"{path}?{query}" if query else path


@pytest.mark.parametrize("service", sorted({row.service for row in ROWS}))
def test_nonsense_is_refused(sender: Sender, shared_cloud: Cloud, service: str) -> None:
    chance = random.Random(f"trainyard {service}")
    for row in [row for row in ROWS if row.service == service] * ROUNDS:
        body = b""
        if row.details:
            body = json.dumps(_body(row.service, row.details, chance, sender.real)).encode()
        elif row.writes and row.method != "DELETE":
            body = json.dumps(chance.choice(_ODD)).encode()
        target = _target(row, chance, sender.real)
        status = sender.send(row.method, target, body)
        assert status not in (500, 501), f"{row.method} {target} {body!r}"
    connection = sqlite3.connect(f"file:{shared_cloud.home / 'state.sqlite3'}?mode=ro", uri=True)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()
