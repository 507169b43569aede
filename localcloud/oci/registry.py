# SPDX-License-Identifier: Apache-2.0
"""The registry for container tools: the distribution API under /v2.

When a tool pushes an image under a tag, the operation behind `trainyard cloud push` records it, so both need the same
permissions.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localcloud.oci import access_decisions, authorization, container_images, registry_tokens, tenancy
from localcloud.oci.authentication import Caller
from localcloud.oci.call_dispatch import dispatch_call
from localcloud.oci.container_images import Digest, is_digest, is_repository
from localcloud.oci.operations import ApiCall, OciCloud
from localcloud.oci.services import artifacts
from localcloud.oci.tenancy_store import StoredResource
from localcloud.server.api_errors import ApiError
from localcloud.server.http import CallInput, FilePart, Reply, Request, Upload

PATH = "/v2"
Receive = Callable[[Path], Awaitable[Upload]]


class RegistryError(Exception):
    """A refusal in the form of the distribution API."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.reply = Reply(status, {"errors": [{"code": code, "message": message, "detail": None}]})


@dataclass(frozen=True)
class RegistryRequest:
    """A request of a tool: its principal, the names in its path, and the digest in its query."""

    cloud: OciCloud
    principal: Caller
    named: Mapping[str, str]
    digest: str
    receive: Receive

    @property
    def repository(self) -> str:
        """The repository's name within the namespace. It is validated, so it cannot contain a tag."""
        namespace, _, name = self.named["name"].partition("/")
        if namespace != tenancy.NAMESPACE or not is_repository(name):
            raise RegistryError(404, "NAME_UNKNOWN", f"repository name not known to registry: {self.named['name']}")
        return name

    @property
    def address(self) -> str:
        return f"{artifacts.REGISTRY}/{tenancy.NAMESPACE}/{self.repository}"

    @property
    def folder(self) -> Path:
        return self.cloud.home / "registry"

    @property
    def uploads(self) -> Path:
        """The folder of unfinished uploads into this repository."""
        return self.folder / "uploads" / hashlib.sha256(self.repository.encode()).hexdigest()

    def blob_path(self, digest: Digest) -> Path:
        return self.folder / "blobs" / digest.hexadecimal

    def has_blob(self, digest: Digest) -> bool:
        """Whether this repository has a blob. A blob that was pushed into another repository does not count."""
        query = "SELECT 1 FROM blobs WHERE repository = ? AND digest = ?"
        row = self.cloud.store.connection.execute(query, (self.repository, digest.text)).fetchone()
        return row is not None and container_images.is_file(self.blob_path(digest))

    def add_blob(self, digest: Digest) -> None:
        query = "INSERT OR IGNORE INTO blobs (repository, digest) VALUES (?, ?)"
        self.cloud.store.connection.execute(query, (self.repository, digest.text))


def is_registry(request: Request) -> bool:
    return request.path == registry_tokens.PATH or request.path == PATH or request.path.startswith(f"{PATH}/")


async def answer_registry_request(cloud: OciCloud, request: Request, receive: Receive) -> tuple[Reply, str]:
    """The reply, and its summary for the server's log."""
    try:
        if request.path == registry_tokens.PATH:
            reply, principal = registry_tokens.answer_token_request(cloud, request)
            return (reply, f"token for {principal.name}") if principal else _challenge_reply(cloud)
        principal = registry_tokens.bearer_principal(cloud, request)
        if principal is None:
            return _challenge_reply(cloud)
        for method, pattern, title, handler in _ROUTES:
            match = pattern.fullmatch(request.path) if method == request.method else None
            if match:
                digest = request.query.get("digest", "")
                reply = await handler(RegistryRequest(cloud, principal, match.groupdict(), digest, receive))
                return reply, f"registry {title} by {principal.name}"
        raise RegistryError(404, "UNSUPPORTED", f"{request.method} {request.path} is not part of this registry")
    except RegistryError as error:
        return error.reply, str(error)
    except container_images.UnreadableManifestError as error:
        refused = RegistryError(400, "MANIFEST_INVALID", f"the manifest cannot be read: {error}")
        return refused.reply, str(refused)
    except ApiError as error:
        # OCI's "not found" also stands for "exists, but is not allowed".
        denied = error.status in (404, 409)
        refused = RegistryError(403 if denied else error.status, "DENIED" if denied else "UNSUPPORTED", error.message)
        return refused.reply, str(error)


def _challenge_reply(cloud: OciCloud) -> tuple[Reply, str]:
    challenge = f'Bearer realm="{cloud.endpoint}{registry_tokens.PATH}",service="{artifacts.REGISTRY}",scope=""'
    refused = RegistryError(401, "UNAUTHORIZED", "authentication required").reply
    return Reply(401, refused.body, {"www-authenticate": challenge}), "registry: authentication required"


async def answer_ping(request: RegistryRequest) -> Reply:
    return Reply(200, {})


async def begin_blob_upload(request: RegistryRequest) -> Reply:
    _may_push(request)
    upload = uuid.uuid4().hex
    request.uploads.mkdir(parents=True, exist_ok=True)
    (request.folder / "blobs").mkdir(parents=True, exist_ok=True)
    (request.uploads / upload).touch()
    return _upload_reply(request, upload)


async def add_to_blob_upload(request: RegistryRequest) -> Reply:
    await _append_to_upload(request)
    return _upload_reply(request, request.named["upload"])


async def finish_blob_upload(request: RegistryRequest) -> Reply:
    file, digest = await _append_to_upload(request), request.digest
    with file.open("rb") as content:
        actual = f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"
    if actual != digest:
        file.unlink()
        raise RegistryError(400, "DIGEST_INVALID", f"the received content has the digest {actual}, not {digest}")
    file.replace(request.blob_path(Digest(actual)))
    request.add_blob(Digest(actual))
    location = f"{PATH}/{request.named['name']}/blobs/{digest}"
    return Reply(201, None, {"location": location, "docker-content-digest": digest})


async def _append_to_upload(request: RegistryRequest) -> Path:
    _may_push(request)
    file = request.uploads / request.named["upload"]
    if not file.exists():
        raise RegistryError(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
    part = await request.receive(file.with_suffix(f".{uuid.uuid4().hex}"))
    with file.open("ab") as whole, part.path.open("rb") as more:
        while chunk := more.read(1 << 20):
            whole.write(chunk)
    part.path.unlink()
    return file


def _upload_reply(request: RegistryRequest, upload: str) -> Reply:
    size = (request.uploads / upload).stat().st_size
    location = f"{PATH}/{request.named['name']}/blobs/uploads/{upload}"
    return Reply(202, None, {"location": location, "range": f"0-{max(size - 1, 0)}", "docker-upload-uuid": upload})


async def get_blob(request: RegistryRequest) -> Reply:
    repositories = request.cloud.store.live(artifacts.REPOSITORY.name, name=request.repository)
    if not repositories or not _may_read(request, repositories[0]):
        raise RegistryError(404, "NAME_UNKNOWN", "repository name not known to registry")
    wanted = Digest(request.named["digest"])
    file = request.blob_path(wanted)
    if not request.has_blob(wanted):
        raise RegistryError(404, "BLOB_UNKNOWN", "blob unknown to registry")
    return _file_reply(file, request.named["digest"], "application/octet-stream")


async def get_manifest(request: RegistryRequest) -> Reply:
    repositories = request.cloud.store.live(artifacts.REPOSITORY.name, name=request.repository)
    digest = request.named["reference"]
    if not is_digest(digest):
        image = artifacts.find_image(request.cloud.store, f"{request.address}:{digest}")
        if image is None:
            raise RegistryError(404, "MANIFEST_UNKNOWN", "manifest unknown")
        digest = str(image.body["digest"])
    file = request.blob_path(Digest(digest))
    pulls = repositories and _may_read(request, repositories[0])
    if not pulls or not request.has_blob(Digest(digest)):
        raise RegistryError(404, "MANIFEST_UNKNOWN", "manifest unknown")
    return _file_reply(file, digest, container_images.media_type(container_images.read_blob(file)))


async def put_manifest(request: RegistryRequest) -> Reply:
    _may_push(request)
    (request.folder / "blobs").mkdir(parents=True, exist_ok=True)
    sent = await request.receive(request.folder / f"manifest-{uuid.uuid4().hex}")
    digest = f"sha256:{sent.sha256}"
    try:
        reference = request.named["reference"]
        if is_digest(reference) and reference != digest:
            raise RegistryError(400, "DIGEST_INVALID", f"the manifest has the digest {digest}")
        manifest = container_images.read_manifest(container_images.read_blob(sent.path))
        if isinstance(manifest, Digest):
            manifest = container_images.read_manifest(_read_pushed_blob(request, manifest))
        if isinstance(manifest, Digest):
            raise container_images.UnreadableManifestError("an index names another index")
        start = container_images.read_start(_read_pushed_blob(request, manifest.config))
        missing = [layer.digest.text for layer in manifest.layers if not request.has_blob(layer.digest)]
        if missing:
            raise RegistryError(400, "MANIFEST_BLOB_UNKNOWN", f"the layer {missing[0]} was not pushed")
        image = {
            "image": f"{request.address}:{reference}@{digest}",
            "entrypoint": start.entrypoint,
            "cmd": start.cmd,
            "layers": [{"digest": layer.digest.text, "sizeInBytes": layer.size} for layer in manifest.layers],
            "manifestSizeInBytes": sent.size,
        }
        sent.path.replace(request.blob_path(Digest(digest)))
        request.add_blob(Digest(digest))
    finally:
        sent.path.unlink(missing_ok=True)
    if request.named["reference"] != digest:
        dispatch_call(_push_call(request, image))
    location = f"{PATH}/{request.named['name']}/manifests/{digest}"
    return Reply(201, None, {"location": location, "docker-content-digest": digest})


def _read_pushed_blob(request: RegistryRequest, digest: Digest) -> bytes:
    try:
        if request.has_blob(digest):
            return container_images.read_blob(request.blob_path(digest))
    except OSError:
        pass  # its file is gone
    raise RegistryError(400, "MANIFEST_BLOB_UNKNOWN", f"{digest.text} was not pushed")


def _push_call(request: RegistryRequest, image: Mapping[str, Any]) -> ApiCall:
    repositories = request.cloud.store.live(artifacts.REPOSITORY.name, name=request.repository)
    named = {"repositoryId": repositories[0].id} if repositories else {}
    given = CallInput(named, target=artifacts.PUSH.path, body=json.dumps(image).encode())
    return ApiCall(request.cloud, artifacts.PUSH, given, request.principal)


def _may_push(request: RegistryRequest) -> None:
    """Raises unless the policies in force allow the push. A push creates a missing repository in the tenancy."""
    call = _push_call(request, {"image": request.address})
    authorization.authorize_call(call)


def _may_read(request: RegistryRequest, repository: StoredResource) -> bool:
    """Whether the principal may read. Permission to push is enough: tools read first, to skip existing blobs."""
    try:
        _may_push(request)
    except ApiError:
        image = replace(repository, body={"repositoryName": repository.name})
        return access_decisions.may_pull(request.cloud.access, request.principal, image)
    return True


def _file_reply(file: Path, digest: str, media_type: str) -> Reply:
    size = file.stat().st_size
    headers = {"content-type": media_type, "docker-content-digest": digest}
    return Reply(200, None, headers, FilePart(file, 0, size))


_UPLOAD = r"/v2/(?P<name>.+)/blobs/uploads/(?P<upload>[0-9a-f]{32})"
_BLOB = r"/v2/(?P<name>.+)/blobs/(?P<digest>sha256:[0-9a-f]{64})"
_MANIFEST = r"/v2/(?P<name>.+)/manifests/(?P<reference>sha256:[0-9a-f]{64}|[A-Za-z0-9_][A-Za-z0-9_.-]{0,199})"
# Method, path, what the server's log says, and the handler.
_ROUTES = (
    ("GET", re.compile(r"/v2/?"), "ping", answer_ping),
    ("POST", re.compile(r"/v2/(?P<name>.+)/blobs/uploads/?"), "begin_upload", begin_blob_upload),
    ("PATCH", re.compile(_UPLOAD), "add_to_upload", add_to_blob_upload),
    ("PUT", re.compile(_UPLOAD), "finish_upload", finish_blob_upload),
    ("HEAD", re.compile(_BLOB), "blob", get_blob),
    ("GET", re.compile(_BLOB), "blob", get_blob),
    ("HEAD", re.compile(_MANIFEST), "manifest", get_manifest),
    ("GET", re.compile(_MANIFEST), "manifest", get_manifest),
    ("PUT", re.compile(_MANIFEST), "put_manifest", put_manifest),
)
