# SPDX-License-Identifier: Apache-2.0
"""The services that a machine on AWS calls: moto, and a metadata service for each instance."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import botocore.session

from tests.support.serving import serving

REGION = "us-east-1"
_TOKEN = "x-aws-ec2-metadata-token"


# The server ends when its standard input is closed, and so with the process that started it. It logs errors only: a
# line for each request would hide the messages of a failed test.
_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
server.stop()
"""


@contextmanager
def moto() -> Iterator[str]:
    """The address of a new, empty moto server. It is a separate process, because the local AWS of other tests changes
    moto's classes in this one."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def client(endpoint: str, service: str) -> Any:
    """AWS's own client."""
    return botocore.session.Session().create_client(
        service, REGION, endpoint_url=endpoint, aws_access_key_id="test", aws_secret_access_key="test"
    )


@dataclass
class Instance:
    """What the metadata service knows of one instance. `answers`: the responses by path."""

    answers: dict[str, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)


@contextmanager
def metadata(instance: Instance) -> Iterator[str]:
    """Serves the metadata of an instance, and yields the address. It has version 2 only, as the cluster's instances
    do."""

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            token = f"token-{len(instance.tokens)}"
            instance.tokens.add(token)
            assert self.headers[f"{_TOKEN}-ttl-seconds"].isdigit()
            self._answer(200, token)

        def do_GET(self) -> None:
            instance.asked.append(self.path)
            if self.headers.get(_TOKEN) not in instance.tokens:
                return self._answer(401, "")
            text = instance.answers.get(self.path)
            return self._answer(404 if text is None else 200, text or "")

        def _answer(self, status: int, text: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as place:
        yield f"http://{place}"


def role(key: str, expires: str) -> dict[str, str]:
    """The responses about the instance's role."""
    path = "/latest/meta-data/iam/security-credentials/"
    answer = {
        "Code": "Success",
        "AccessKeyId": key,
        "SecretAccessKey": "secret",
        "Token": "token",
        "Expiration": expires,
    }
    return {path: "nodes", f"{path}nodes": json.dumps(answer)}
