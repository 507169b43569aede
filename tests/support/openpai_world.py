# SPDX-License-Identifier: Apache-2.0
"""The local OpenPAI with its users, plain HTTP calls to it, and small jobs."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from localcloud.control import Cloud
from tests.support.waiting import LONGEST_SECONDS, eventually

API = "/rest-server"
OVER = ("STOPPED", "SUCCEEDED", "FAILED")
# The users of the local cluster.
ADMIN, USER = "deployer", "user"


@dataclass(frozen=True)
class RestAnswer:
    status: int
    kind: str
    content: bytes

    @property
    def body(self) -> Any:
        """The parsed body. It is a string if the body is neither JSON nor YAML."""
        if "yaml" in self.kind:
            return yaml.safe_load(self.content)
        return json.loads(self.content) if "json" in self.kind else self.content.decode()


def job(name: str, *commands: str, **differences: Any) -> dict[str, Any]:
    """A job of one task role. `role` in `differences` changes that role, other keys change the job."""
    role = {
        "instances": 1,
        "completion": {"minFailedInstances": 1, "minSucceededInstances": 1},
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
        "commands": [*commands] or ["true"],
        **differences.pop("role", {}),
    }
    return {
        "protocolVersion": 2, "name": name, "type": "job",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "debian:12"}],
        "taskRoles": {"worker": role}, **differences,
    }  # fmt: skip


@dataclass(frozen=True)
class OpenPaiWorld:
    cloud: Cloud

    @property
    def accounts(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = json.loads((self.cloud.home / "openpai.json").read_text())
        return content

    def token(self, user: str) -> str:
        return str(self.accounts["tokens"][user])

    def ask(
        self, method: str, path: str, body: Any = None, *, user: str = USER, token: str | None = None, kind: str = ""
    ) -> RestAnswer:
        """One call of the REST API. A `body` of bytes is sent unchanged, any other as JSON. With an empty token, none
        is sent."""
        token = self.token(user) if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers |= {"Content-Type": kind or "application/json"} if content is not None else {}
        connection = http.client.HTTPConnection(self.cloud.endpoint.removeprefix("http://"), timeout=LONGEST_SECONDS)
        try:
            connection.request(method, API + path, content, headers)
            answer = connection.getresponse()
            return RestAnswer(answer.status, answer.getheader("content-type", ""), answer.read())
        finally:
            connection.close()

    def submit(self, protocol: Mapping[str, Any], user: str = USER) -> RestAnswer:
        return self.ask("POST", "/api/v2/jobs", yaml.safe_dump(dict(protocol)).encode(), user=user, kind="text/yaml")

    def submitted(self, protocol: Mapping[str, Any], user: str = USER) -> str:
        """Submits a job, and returns its full name, such as `user~hello`."""
        answer = self.submit(protocol, user)
        assert answer.status == 202, answer.content
        return f"{user}~{protocol['name']}"

    def status(self, name: str) -> Any:
        answer = self.ask("GET", f"/api/v2/jobs/{name}")
        assert answer.status == 200, answer.content
        return answer.body

    def reaches(self, name: str, *states: str) -> Any:
        """Waits until the job is in one of these states, and returns it."""
        return eventually(lambda: self.status(name), lambda found: found["jobStatus"]["state"] in states)

    def ended(self, name: str) -> Any:
        return self.reaches(name, *OVER)
