# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.recorded.record_live`: brings stacks up on local clouds, changes them without Pulumi, and keeps what
the clouds answer to `trainyard drift`.

It needs the engine, and minutes. The answers stay as they are until a drift reads other things of a cloud.
"""

from __future__ import annotations

import configparser
import http.client
import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from localcloud.control import Cloud
from tests.recorded.cloud_answers import key_of, serving
from tests.recorded.live_drifts import LIVE, find_live_drift, write_json
from tests.support import drift_changes_aws, drift_changes_oci
from tests.support.drifting import BehindTheBack, StackUp, stack_up
from tests.support.local_team import Team

SEED, DRAWN = 39, 9
# Headers that clients read: errors, pages, versions of objects.
_KEPT = ("content-type", "etag", "last-modified", "opc-next-page", "x-amz-version-id")
_POSITIONS = ("sourcePosition", "stackTrace")
Maker = Callable[[Random], BehindTheBack]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        team = Team(Path(place, "oci"))
        try:
            team.trainyard("up", "local")
            up = stack_up("local", team.home, team.cloud)
            record_changes("oci", team, up, drift_changes_oci.Changes(up).makers())
        finally:
            team.end()
        team = Team(Path(place, "aws"), drift_changes_aws.STACK)
        team.change("mode: documented", "mode: least-privilege")
        try:
            team.trainyard("up", drift_changes_aws.STACK)
            up = stack_up(drift_changes_aws.STACK, team.home, team.cloud)
            record_changes("aws", team, up, drift_changes_aws.Changes(up).makers())
        finally:
            team.end()


def record_changes(name: str, team: Team, up: StackUp, makers: Sequence[Maker]) -> None:
    """Writes the folder of one platform."""
    folder = LIVE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    state = json.dumps({"deployment": {"resources": [_without_positions(row) for row in up.state]}}, indent=1)
    (folder / "state.json").write_text(state + "\n", "utf-8")
    file = Path(shutil.copy(team.home / "pulumi" / "stacks" / team.file.name, folder))
    write_json(folder / "cloud.json", _facts(up.cloud))
    base, _ = recorded_answers(up.cloud, file, state)
    write_json(folder / "answers.json", base)
    chance = Random(SEED)
    for number, maker in enumerate(chance.sample(list(makers), DRAWN), 1):
        change = maker(chance)
        undo = change.make()
        try:
            answers, drift = recorded_answers(up.cloud, file, state)
        finally:
            undo()
        other = {key: answer for key, answer in answers.items() if base.get(key) != answer}
        write_json(folder / f"{number:02}.json", {"title": change.title, "answers": other, "drift": drift})


def _without_positions(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in _POSITIONS}


def _facts(cloud: Cloud) -> dict[str, str]:
    profiles = configparser.ConfigParser()
    profiles.read(cloud.config_file)
    user = {name: profiles["deployer"][name] for name in ("user", "fingerprint")}
    return {"tenancy": cloud.tenancy, "compartment": cloud.compartment, "namespace": cloud.namespace,
            "region": cloud.region, **user}  # fmt: skip


def recorded_answers(cloud: Cloud, file: Path, state: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """All answers of the cloud while its drift is found, and the drift."""
    port = int(cloud.endpoint.rpartition(":")[2])
    seen: dict[str, Any] = {}
    direct = threading.local()

    def forward(handler: Any, body: bytes) -> Mapping[str, Any]:
        direct.now = True
        key = key_of(handler.command, handler.path, body, handler.headers.get("X-Amz-Target", ""))
        seen[key] = _answer_of(port, handler, body)
        answer: Mapping[str, Any] = seen[key]
        return answer

    with serving(forward) as proxy, _redirected(port, proxy, direct):
        drift = find_live_drift(cloud, file, state)
    return seen, drift


@contextmanager
def _redirected(port: int, proxy: int, direct: threading.local) -> Iterator[None]:
    """Leads connections of this process to the proxy. The requests stay as signed, because the cloud checks them."""
    plain = socket.socket

    class Redirected(plain):  # type: ignore[misc, valid-type]
        def connect(self, address: Any) -> None:
            is_for_cloud = address[:2] == ("127.0.0.1", port) and not getattr(direct, "now", False)
            super().connect(("127.0.0.1", proxy) if is_for_cloud else address)

    socket.socket = Redirected  # type: ignore[misc]
    try:
        yield
    finally:
        socket.socket = plain  # type: ignore[misc]


def _answer_of(port: int, handler: Any, body: bytes) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            if name.lower() not in ("connection", "expect"):
                connection.putheader(name, value)
        connection.endheaders(body or None)
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    headers = {name.lower(): value for name, value in response.getheaders() if name.lower() in _KEPT}
    answer: dict[str, Any] = {"status": response.status, "headers": headers}
    try:
        return {**answer, "json": json.loads(content)}
    except ValueError:
        return {**answer, "text": content.decode()}


if __name__ == "__main__":
    main()
