# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` for OpenPAI: opens buckets that speak S3, and explains where files on a storage of the cluster are.

The launcher chooses a store by the scheme of its address, and so does this module. The platform with an S3 client opens
the bucket, with the caller's own keys: keys in the stack file are secrets of the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from components.openpai.client.status import storages_folder
from components.platform.base import platform
from components.platform.files import Store, StoreOpener, StoreRequest, TransferError
from launcher.escaping import terminal

BUCKET_KEY, STORAGE_KEY = "trainyard:bucket", "trainyard:storage"
# The platform whose S3 client we reuse, and the keys of a stack file that configure it.
_S3, _REGION, _ENDPOINT = "aws-dl1", "aws:region", "aws:endpoint"


@dataclass(frozen=True)
class OpenPaiOpener:
    """Implements `components.platform.files.StoreOpener`."""

    request: StoreRequest

    def bucket(self, name: str) -> Store:
        if self._storage and not _mapping(self.request.where.config.get(BUCKET_KEY)):
            raise TransferError(self._on_storage(str(self._storage.get("folder") or "")))
        return self._s3().bucket(name)

    def folder(self, address: str) -> tuple[Store, str]:
        parts = urlsplit(address)
        if parts.scheme == "file":
            raise TransferError(self._on_storage(unquote(parts.path)))
        return self._s3().folder(address)

    @property
    def _storage(self) -> Mapping[str, Any]:
        return _mapping(self.request.where.config.get(STORAGE_KEY))

    def _on_storage(self, path: str) -> str:
        """The reason why nothing can be transferred, and the place of the files. A job may name any folder."""
        name = str(self._storage.get("name") or "")
        mount = str(self._storage.get("mount") or f"/mnt/{name}")
        below = path.removeprefix(f"{mount}/")
        called = f"the storage {name}" if name else "a storage"
        inside = f", in {terminal(below)}" if below else ""
        if self.request.where.cloud is not None:
            folder = terminal(str(storages_folder(self.request.where.cloud.home) / name / below.lstrip("/")))
            where = f"The local cloud keeps them in {folder}: copy them from there"
        else:
            where = (
                "OpenPAI has no API for the files of a storage: mount it here, as its page in the web portal says, "
                "and copy them"
            )
        return f"runs of this stack keep their files on {called} of the cluster{inside}\n{where}"

    def _s3(self) -> StoreOpener:
        bucket = _mapping(self.request.where.config.get(BUCKET_KEY))
        where = {_REGION: bucket.get("region"), _ENDPOINT: bucket.get("endpoint")}
        config = {key: value for key, value in where.items() if isinstance(value, str) and value}
        return platform(_S3).files(replace(self.request, where=replace(self.request.where, config=config)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def make(request: StoreRequest) -> OpenPaiOpener:
    return OpenPaiOpener(request)
