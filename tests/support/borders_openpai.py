# SPDX-License-Identifier: Apache-2.0
"""Malformed requests to the local OpenPAI, by a user who has jobs and tokens, and what they changed or showed of
another user. What changed is read from the store; the decisions of the access check are not considered."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sqlite3
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import yaml

from localcloud.control import Cloud
from localcloud.openpai.cluster import ROUTES
from tests.support.openpai_world import ADMIN, API, USER, OpenPaiWorld, job
from tests.support.seams import Asked, Draw, torn
from tests.support.wire import Wire

# Only a few names of jobs, so that most of them exist already.
_NAMES = ("hello", "secret", "third", "fourth")
_QUERIES = (
    "SELECT name, uid, execution, config, protocol FROM jobs WHERE user != :user ORDER BY name",
    "SELECT job, tag FROM tags WHERE job NOT LIKE 'user~%' ORDER BY job, tag",
    "SELECT token, user FROM tokens WHERE user != :user ORDER BY token",
    "SELECT name FROM jobs WHERE user = :user AND cluster != 'default'",
    "SELECT name FROM jobs WHERE instr(config, :canary)",
)  # fmt: skip


@dataclass
class OpenPaiBorder:
    """A cluster with one job of each user. The administrator's job has a secret, a tag and all GPUs, so that no other
    job that needs a GPU starts."""

    cloud: Cloud

    def __post_init__(self) -> None:
        self.canary = f"canary{secrets.token_hex(8)}"
        self.world = OpenPaiWorld(self.cloud)
        everything = {"resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 4096}}
        told = {"secrets": {"word": self.canary}, "role": everything}
        self.world.submitted(job("secret", "exec sleep 3600", **told), ADMIN)
        assert self.world.ask("PUT", "/api/v2/jobs/deployer~secret/tag", {"value": "mine"}, user=ADMIN).status == 200
        self.world.reaches("deployer~secret", "RUNNING")
        self.world.submitted(self._job("hello"))
        self._password = str(self.world.accounts["passwords"][USER])
        login = {"username": USER, "password": self._password}
        self._login = str(self.world.ask("POST", "/api/v2/authn/basic/login", login, token="").body["token"])
        self._store = sqlite3.connect(f"file:{self.cloud.home / 'openpai' / 'state.sqlite3'}?mode=ro", uri=True)
        (self._attempt,) = self._store.execute("SELECT id FROM task_attempts WHERE job = 'deployer~secret'").fetchone()
        self.wire = Wire(self.cloud.endpoint)

    def close(self) -> None:
        self.wire.close()
        self._store.close()

    def outside(self) -> str:
        """Everything that the caller must not change."""
        found = hashlib.sha256((self.cloud.home / "openpai.json").read_bytes())
        for query in _QUERIES:
            for row in self._store.execute(query, {"user": USER, "canary": self.canary}):
                found.update(repr(row).encode())
        return found.hexdigest()

    def fails_itself(self, status: int, content: bytes) -> bool:
        """Whether OpenPAI's own REST server fails at this text: it answers without a code then, as ours does."""
        return status == 500 and set(json.loads(content)) == {"message"}

    def ask(self, draw: Draw) -> tuple[Asked, int, bytes]:
        """Draws a request, and sends it."""
        asked = torn(draw, self._asked(draw))
        token = draw.choice([self._login, str(self.world.accounts["tokens"][USER])])
        basic = b64encode(f"{USER}:{token}".encode()).decode()
        known = draw.choice([f"Bearer {token}", f"bearer {token}", f"Basic {basic}"])
        host = self.cloud.endpoint.removeprefix("http://")
        status, content = self.wire.send(asked, (("host", host), ("authorization", known), *asked.headers))
        if asked.what in ("BasicLogout", "DeleteToken") and status == 200:  # the next request needs a new token
            login = {"username": USER, "password": self._password}
            self._login = str(self.world.ask("POST", "/api/v2/authn/basic/login", login, token="").body["token"])
        return asked, status, content

    def _job(self, name: str) -> dict[str, Any]:
        one = {"resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 1}}
        return job(name, secrets={"word": self.canary}, role=one)

    def _asked(self, draw: Draw) -> Asked:
        if draw.random() < 0.1:
            return self._log(draw)
        route = draw.choice(ROUTES)
        named = {
            "job": f"{draw.choice([USER, USER, ADMIN])}~{draw.choice(_NAMES)}", "user": draw.choice([USER, ADMIN]),
            "token": draw.choice([self._login, "x"]), "storage": "shared", "cluster": "default", "role": "worker",
        }  # fmt: skip
        path = re.sub(r"\{(\w+)\}", lambda found: quote(named.get(found[1], draw.choice("01")), safe="~"), route.path)
        others = {
            "job": "deployer~secret", "user": ADMIN, "username": ADMIN, "name": "secret", "value": "STOP",
            "token": "x", "userName": ADMIN, "virtualCluster": "reserved",
        }  # fmt: skip
        body, raw = self._content(draw, route.name)
        query = (("username", USER),) if draw.random() < 0.3 else ()
        return Asked(route.name, route.method, f"{API}/api/v2{path}", query, (), body, raw, others)

    def _content(self, draw: Draw, route: str) -> tuple[Any, bytes | None]:
        if route == "SubmitJob":
            return None, self._written(draw).encode()
        if route == "BasicLogin":
            # The administrator's password is not known here.
            return {"username": USER, "password": self._password}, None
        return {"value": draw.choice(["STOP", "START", "tag"])}, None

    def _written(self, draw: Draw) -> str:
        """A job with a secret, in one of the spellings that YAML allows."""
        made = self._job(draw.choice(_NAMES) if draw.random() < 0.5 else f"job-{draw.randrange(1 << 30)}")
        if draw.random() < 0.3:
            made["defaults"] = {"virtualCluster": draw.choice(["default", "reserved"])}
        word = made.pop("secrets")["word"]
        rest = draw.choice([json.dumps(made)[1:-1], None])
        if rest is not None:
            return f'{{"secrets": {{"word": "{word}"}}, {rest}}}'
        secret = draw.choice(
            [f"secrets:\n  word: {word}", f'"secrets": {{word: {word}}}', f"secrets : {{word: {word}}}",
             f"? secrets\n: word: {word}", f"? [secrets]\n: word: {word}", f"!!str secrets: {{word: {word}}}",
             f"<<: {{secrets: {{word: {word}}}}}", f"secrets: {{word: &w {word}}}\nparameters: {{w: *w}}",
             f"parameters: &p {{secrets: {{word: {word}}}}}\n<<: *p", f'"\\x73ecrets": {{word: {word}}}']
        )  # fmt: skip
        return f"{secret}\n{yaml.safe_dump(made)}"

    def _log(self, draw: Draw) -> Asked:
        """A request for the log of another user's task, with the sender's own token."""
        path = f"/log-manager/127.0.0.1:9103/api/v1/logs/{draw.choice(['all', 'stdout', 'user.pai.all'])}"
        query = (("pod-uid", self._attempt), ("token", self._login), ("username", USER))
        return Asked("ReadLog", "GET", path, query, (), None, None, {"pod-uid": self._attempt, "token": "x"})


def shows(content: bytes, canaries: Sequence[str]) -> bool:
    """Whether a response has one of these texts, plain or in base64."""
    return any(each.encode() in content or b64encode(each.encode())[:-4] in content for each in canaries)
