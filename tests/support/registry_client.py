# SPDX-License-Identifier: Apache-2.0
"""Makes the requests of a container tool to a registry one by one, so that tests can check each response."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from components.oci.client.registry import TOKEN_USER, registry_token
from components.oci.client.session import Session
from localcloud.control import Cloud
from trainyard.images import build_push

MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def described_image(config: Mapping[str, Any]) -> bytes:
    return json.dumps({"architecture": "amd64", "os": "linux", "config": config}).encode()


# The configuration of an image without any settings.
CONFIG = described_image({})


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def code(self) -> str:
        """The distribution API's error code of a response."""
        return str(json.loads(self.content)["errors"][0]["code"])


@dataclass(frozen=True)
class Tool:
    """One client. Without a token, its requests are anonymous."""

    cloud: Cloud
    token: str = ""

    @staticmethod
    def signed_in(cloud: Cloud, profile: str = "deployer") -> Tool:
        session = Session(profile=profile, config_file=str(cloud.config_file))
        place = build_push.registry_endpoint("iad.ocir.io", cloud.env)
        return Tool(cloud, registry_token(session, place))

    def ask(self, method: str, path: str, content: bytes = b"", **headers: str) -> Answer:
        if self.token:
            known = base64.b64encode(f"{TOKEN_USER}:{self.token}".encode()).decode()
            headers = {"Authorization": f"Basic {known}", **headers}
        connection = http.client.HTTPConnection(urlsplit(self.cloud.endpoint).netloc, timeout=120)
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def put_blob(self, repository: str, content: bytes, digest: str = "") -> Answer:
        begun = self.ask("POST", f"/v2/{repository}/blobs/uploads/")
        if begun.status != 202:
            return begun
        # A layer is sent in two parts, as some tools do.
        half = len(content) // 2
        more = self.ask("PATCH", begun.headers["location"], content[:half])
        where = f"{more.headers['location']}?digest={quote(digest or digest_of(content))}"
        return self.ask("PUT", where, content[half:])

    def push(self, repository: str, tag: str, layer: bytes = b"layer", **config: Any) -> Answer:
        """Pushes an image of one layer."""
        described = described_image(config)
        for blob in (layer, described):
            put = self.put_blob(repository, blob)
            if put.status != 201:
                return put
        return self.ask("PUT", f"/v2/{repository}/manifests/{tag}", manifest(described, layer))


def manifest(config: bytes, *layers: bytes) -> bytes:
    def told(content: bytes, kind: str) -> dict[str, Any]:
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest_of(content), "size": len(content)}

    described = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": told(config, "config.v1+json"),
        "layers": [told(layer, "layer.v1.tar") for layer in layers],
    }
    return json.dumps(described).encode()
