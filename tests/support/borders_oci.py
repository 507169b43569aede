# SPDX-License-Identifier: Apache-2.0
"""Malformed requests to the local OCI, by a caller who may do everything in one compartment, and what they changed or
showed of another compartment. What changed is read from the store; the decisions of the access check are not
considered."""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

from catalog.tables import table
from localcloud.control import Cloud
from localcloud.oci import sdk, services
from localcloud.oci.authentication import METHODS_WITH_BODY, signing_string
from localcloud.oci.operations import ApiOperation
from tests.support.registry_client import CONFIG, Tool, digest_of, manifest
from tests.support.seams import Asked, Draw, torn
from tests.support.signing import Signing
from tests.support.two_teams import OURS, THEIRS, Caller, Team, now, team
from tests.support.wire import Wire

# Not called: a run would start processes, and a user may make and delete keys of their own.
_NOT_ASKED = frozenset({"CreateJobRun", "CreateNotebookSession", "UploadApiKey", "DeleteApiKey"})
# Operations that name a resource in two places, or two resources, are drawn ten times as often.
_TWO_NAMES = frozenset(
    {"CopyObject", "RenameObject", "BatchDeleteObjects", "UploadPart", "CommitMultipartUpload", "AbortMultipartUpload"}
)
_ROWS = tuple(
    row
    for row in services.service_operations()
    if row.name not in _NOT_ASKED
    for _ in range(10 if row.name in _TWO_NAMES else 1)
)
_REGISTRY = (
    ("POST", "/v2/{name}/blobs/uploads/"), ("PATCH", "/v2/{name}/blobs/uploads/{upload}"),
    ("PUT", "/v2/{name}/blobs/uploads/{upload}"), ("GET", "/v2/{name}/blobs/{digest}"),
    ("GET", "/v2/{name}/manifests/{reference}"), ("PUT", "/v2/{name}/manifests/{reference}"),
)  # fmt: skip
# What the caller must not change: everything outside the compartment, those below it, and the prefix of repositories.
_OUTSIDE = """
WITH RECURSIVE mine(id) AS (
    VALUES (:ours)
    UNION SELECT r.id FROM resources r JOIN mine ON r.compartment = mine.id WHERE r.kind = 'compartment'),
    buckets(id) AS (SELECT id FROM resources WHERE kind = 'bucket' AND compartment IN mine)
"""
_QUERIES = (
    "SELECT id, etag, live, compartment FROM resources WHERE compartment NOT IN mine AND id NOT IN mine"
    " AND kind != 'work-request' ORDER BY id",
    "SELECT bucket, name, etag, file FROM objects WHERE bucket NOT IN buckets ORDER BY bucket, name",
    "SELECT bucket, name, file, marker FROM versions WHERE bucket NOT IN buckets ORDER BY sequence",
    "SELECT u.id, u.name, p.number, p.etag FROM uploads u LEFT JOIN parts p ON p.upload = u.id"
    " WHERE u.bucket NOT IN buckets ORDER BY u.id, p.number",
    "SELECT repository, digest FROM blobs WHERE repository NOT LIKE 'ours%' ORDER BY repository, digest",
    "SELECT log, count(*), max(sequence) FROM log_lines WHERE log NOT IN"
    " (SELECT id FROM resources WHERE kind = 'log' AND compartment IN mine) GROUP BY log ORDER BY log",
    "SELECT compartment, count(*), max(time) FROM metrics WHERE compartment NOT IN mine GROUP BY 1 ORDER BY 1",
)  # fmt: skip


@dataclass
class OciBorder:
    """Two teams in one cloud. `user` may do everything in the compartment of the first team, and nothing else."""

    cloud: Cloud

    def __post_init__(self) -> None:
        self.canary = f"canary-{secrets.token_hex(8)}"
        self._uploads: list[str] = []
        self._blobs: list[str] = []
        with closing(Caller(self.cloud)) as admin:
            self.ours, self.theirs = team(admin, OURS, 1, runs=False), team(admin, THEIRS, 2, runs=False)
            self._plant(admin)
            grants = [f"Allow group scientists to manage all-resources in compartment id {self.ours.compartment}"]
            place = {"name": "border", "description": "border", "compartmentId": self.cloud.tenancy}
            admin.made("/20160918/policies", {**place, "statements": grants})
        self._signing, self._token = Signing(self.cloud, "user"), Tool.signed_in(self.cloud, "user").token
        self.wire = Wire(self.cloud.endpoint)
        self._store = sqlite3.connect(f"file:{self.cloud.home / 'state.sqlite3'}?mode=ro", uri=True)

    def close(self) -> None:
        self.wire.close()
        self._store.close()

    def _plant(self, admin: Caller) -> None:
        """Adds texts that no response may show, and uploads of another user."""
        space, theirs = f"/n/{self.cloud.namespace}/b", self.theirs
        canary = self.canary.encode()
        assert admin.ask("PUT", f"{space}/{theirs['bucket']}/o/canary", raw=canary).status == 200
        assert admin.ask("PUT", f"{space}/{self.ours['bucket']}/o/kept", raw=b"ours").status == 200
        for mine in (self.ours, self.theirs):  # an upload to an object that only the other team may change
            upload = admin.made(f"{space}/{mine['bucket']}/u", {"object": THEIRS})["uploadId"]
            part = f"{space}/{mine['bucket']}/u/{THEIRS}?uploadId={upload}&uploadPartNum=1"
            assert admin.ask("PUT", part, raw=b"ours" if mine is self.ours else canary).status == 200
            self._uploads.append(upload)
        entry = {"data": self.canary, "id": "canary", "time": now()}
        batch = {"entries": [entry], "source": "s", "type": "t", "defaultlogentrytime": now()}
        lines = {"specversion": "1.0", "logEntryBatches": [batch]}
        admin.made(f"/20200831/logs/{theirs['log']}/actions/push", lines)
        tool = Tool.signed_in(self.cloud)
        # The other team's layer is named but never sent: a user who has the content may push it anywhere.
        self._layers = (b"layer of ours", canary)
        for mark, layer in zip((OURS, THEIRS), self._layers, strict=True):
            repository = f"{self.cloud.namespace}/{mark}/image"
            assert tool.push(repository, "2", layer=layer).status == 201
            begun = tool.ask("POST", f"/v2/{repository}/blobs/uploads/").headers["location"]
            self._blobs.append(begun.rpartition("/")[2])
        self._digests = [digest_of(layer) for layer in self._layers]

    def outside(self) -> str:
        """Everything that the caller must not change."""
        found = hashlib.sha256()
        for query in _QUERIES:
            for row in self._store.execute(_OUTSIDE + query, {"ours": self.ours.compartment}):
                found.update(repr(row).encode())
        begun = self._their_blob
        found.update(str(begun.exists() and begun.stat().st_size).encode())
        return found.hexdigest()

    @cached_property
    def _their_blob(self) -> Path:
        """An upload of another user into the other team's repository."""
        (file,) = (self.cloud.home / "registry" / "uploads").rglob(self._blobs[1])
        return file

    def fails_itself(self, status: int, content: bytes) -> bool:
        return False

    def ask(self, draw: Draw) -> tuple[Asked, int, bytes]:
        """Draws a request, and sends it."""
        asked = torn(draw, self._registry(draw) if draw.random() < 0.15 else self._operation(draw))
        status, content = self.wire.send(asked, self._signed(asked))
        return asked, status, content

    def _signed(self, asked: Asked) -> Sequence[tuple[str, str]]:
        """All headers in order: first those that the signature covers, last the repeated ones."""
        if asked.path.startswith("/v2/"):
            return (("host", self._signing.host), ("authorization", f"Bearer {self._token}"), *asked.headers)
        given = {name.lower(): value for name, value in reversed(asked.headers)}
        headers = {"date": formatdate(usegmt=True), "host": self._signing.host}
        names = ["date", "(request-target)", "host"]
        if asked.method.upper() in METHODS_WITH_BODY:
            digest = b64encode(hashlib.sha256(asked.content).digest()).decode()
            kind = given.get("content-type", "application/json")
            length = str(len(asked.content))
            headers |= {"x-content-sha256": digest, "content-type": kind, "content-length": length}
            names += ["x-content-sha256", "content-type", "content-length"]
        text = signing_string(asked.method, asked.target, headers, tuple(names))
        value = b64encode(self._signing.key.sign(text, PKCS1v15(), hashes.SHA256())).decode()
        headers["authorization"] = (
            f'Signature version="1",keyId="{self._signing.key_id}",algorithm="rsa-sha256",'
            f'headers="{" ".join(names)}",signature="{value}"'
        )
        more = list(asked.headers)
        if ("content-type", headers.get("content-type", "")) in more:
            more.remove(("content-type", headers["content-type"]))
        return (*headers.items(), *more)

    def _operation(self, draw: Draw) -> Asked:
        row = draw.choice(_ROWS)
        mixed = _Mixed(draw, self.ours, self.theirs, self._uploads, self._digests[0])
        path = re.sub(r"\{(\w+)\}", lambda found: quote(mixed.value(found[1]), safe=""), row.path)
        path = path.replace(quote(THEIRS + "-namespace"), self.cloud.namespace)
        query = tuple((name, mixed.value(name)) for name in _query_of(row) if draw.random() < 0.8)
        headers = tuple((name, mixed.value(name)) for name in ("if-match", "opc-retry-token") if draw.random() < 0.1)
        body = mixed.details(row.service, row.details) if row.details else mixed.own_details(row.name)
        raw = draw.choice([b"", b"content"]) if row.streams or not row.writes else None
        return Asked(row.name, row.method, path, query, headers, None if raw is not None else body, raw, mixed.others)

    def _registry(self, draw: Draw) -> Asked:
        method, path = draw.choice(_REGISTRY)
        which = draw.randrange(2)
        ours, theirs = self._layers
        named_layer = draw.choice(self._layers)
        content = draw.choice([b"", b"x", ours, manifest(CONFIG, named_layer), manifest(theirs, named_layer)])
        space = self.cloud.namespace
        named = {
            "name": f"{space}/{(OURS, THEIRS)[which]}/image", "upload": draw.choice(self._blobs),
            "digest": draw.choice(self._digests), "reference": draw.choice(["1", "2", "9", *self._digests]),
        }  # fmt: skip
        query = (("digest", digest_of(content)),) if method == "PUT" else ()
        others = {"name": f"{space}/{THEIRS}/image", "digest": self._digests[1], "reference": f"{THEIRS}/image:1"}
        filled = re.sub(r"\{(\w+)\}", lambda found: named[found[1]], path)
        return Asked(f"registry {method} {path}", method, filled, query, (), None, content, others)


class _Mixed:
    """Values for parameters and fields: of the right kind, mostly of our team, sometimes of the other."""

    def __init__(self, draw: Draw, ours: Team, theirs: Team, uploads: Sequence[str], digest: str) -> None:
        self._draw, self._digest, self._uploads = draw, digest, uploads
        self._ours, self._theirs = ours, theirs
        self.others: dict[str, str] = {}

    def value(self, name: str) -> str:
        if name == "namespaceName" or name.endswith("Namespace"):
            return "trainyardlocal"
        kinds = str(table("references")["kinds"].get(name, "")).removesuffix("?").split()
        kind = _KINDS.get(name) or next((one for one in kinds if one in self._ours.things), "")
        if kind:
            self.others[name] = self._theirs[kind]
            return self._draw.choice([self._ours, self._ours, self._theirs])[kind]
        if name == "uploadId":
            return self._draw.choice([self._ours["upload"], self._theirs["upload"], *self._uploads])
        self.others.setdefault(name, THEIRS)
        return self._draw.choice(_TEXTS.get(name) or (OURS, THEIRS, "1", "true", "canary"))

    def details(self, service: str, model: str, depth: int = 0) -> dict[str, Any]:
        """A body by the SDK's model, with the required fields and some of the others."""
        return {
            name: self._draw.choice(sorted(field.allowed)) if field.allowed and field.type == "str" else typed
            for name, field in sdk.sdk_model(service, model).fields.items()
            if field.required or (depth < 2 and self._draw.random() < 0.15)
            for typed in [self._typed(service, field.type, name, depth)]
        }

    def own_details(self, operation: str) -> Any:
        if operation == "PushContainerImage":
            mark = self._draw.choice([OURS, THEIRS])
            self.others["image"] = f"iad.ocir.io/trainyardlocal/{THEIRS}/image:1"
            return {"image": f"iad.ocir.io/trainyardlocal/{mark}/image:{self._draw.choice('129')}"}
        return {"resource": self.value("jobRunId")} if operation == "IssueToken" else None

    def _typed(self, service: str, kind: str, name: str, depth: int) -> Any:
        if match := re.fullmatch(r"list\[(.+)\]", kind):
            return [self._typed(service, match[1], name.removesuffix("s"), depth) for _ in range(1)]
        if kind.startswith("dict"):
            return {}
        if kind == "object" or name in _LEFT_OUT:
            return None
        if kind in ("int", "float"):
            return self._draw.choice([0, 1, 6, 50])
        if kind == "bool":
            return self._draw.random() < 0.5
        if kind == "datetime":
            return now()
        return self.value(name) if kind == "str" else self.details(service, kind, depth + 1)


# Values that the local cloud has nowhere else, or that random values would hardly ever match.
_LEFT_OUT = frozenset(
    {"kmsKeyId", "byoipv6CidrDetail", "ipv6CidrBlock", "ipv6PrivateCidrBlock", "isIpv6Enabled", "sourceVersionId",
     "sourceObjectIfMatchETag", "destinationObjectIfMatchETag", "destinationObjectIfNoneMatchETag", "srcObjIfMatchETag"}
)  # fmt: skip
_KINDS = {
    "bucketName": "bucket", "destinationBucket": "bucket", "resourceId": "log", "fingerprint": "fingerprint",
    "securityListId": "security-list", "vnicId": "subnet", "privateIpId": "subnet",
}  # fmt: skip
_TEXTS: Mapping[str, Sequence[str]] = {
    "image": (),
    "secretName": (OURS, THEIRS),
    "vaultId": (f"vault-{OURS}", f"vault-{THEIRS}"),
    "uploadPartNum": ("1", "2"),
    "limit": ("1", "100"),
    "cidrBlock": ("10.1.7.0/24", "10.2.7.0/24"),
    "destinationRegion": ("us-ashburn-1",),
    "namespace": ("two_teams", "trainyardlocal"),
    "searchQuery": ("", f'search "{THEIRS}"'),
    "query": ("ours[1m].mean()", "theirs[1m].mean()"),
    "specversion": ("1.0",),
    "publicAccessType": ("NoPublicAccess", "ObjectRead"),
    "opc-retry-token": ("one", "two"),
    "if-match": ("*", "x"),
    "statement": ("Allow group scientists to manage all-resources in tenancy",),
    "matchingRule": ("all {resource.type = 'datasciencejobrun'}",),
    "shapeName": ("VM.Standard2.1",),
    "protocol": ("6", "all"),
    "networkEntityType": ("CIDR_BLOCK",),
    "content": ("b3Vycw==",),
    "contentType": ("BASE64",),
    "keyId": ("key",),
    "name": ("a", "b", OURS, THEIRS),
    "object": (OURS, THEIRS, "a"),
    "newName": (OURS, THEIRS, "a"),
    "objectName": (OURS, THEIRS, "a", "canary"),
    "sourceName": (OURS, THEIRS, "canary"),
    "sourceObjectName": ("kept", "kept", "kept", "canary"),
    "destinationObjectName": (OURS, THEIRS, "a"),
    "logType": ("CUSTOM",),
}


def _query_of(row: ApiOperation) -> Iterator[str]:
    if row.service == "object_storage":
        if "/u/{" in row.path:
            yield from ("uploadId", "uploadPartNum")
        if row.name == "ListBuckets":
            yield "compartmentId"
        return
    if row.name == "GetSecretBundleByName":
        yield from ("secretName", "vaultId")
    if row.method == "GET" or row.service == "monitoring":
        more = ("vcnId", "displayName", "repositoryId", "compartmentIdInSubtree")
        yield from ("compartmentId", *more[: len(row.name) % 5])
