# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` for OpenPAI: opens buckets that speak S3, and explains where files on a storage of the cluster are.

The launcher chooses a store by the scheme of its address, and so does this module. The platform with an S3 client opens
the bucket, with the caller's own keys: keys in the stack file are secrets of the tasks.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from catalog.platforms import platforms, require_capability
from components.openpai.client.storages import storages_folder
from components.platform.files import Store, StoredObject, StoreOpener, StoreOpeners, StoreRequest, TransferError
from launcher.escaping import terminal_line

BUCKET_KEY, STORAGE_KEY = "trainyard:bucket", "trainyard:storage"


@dataclass(frozen=True)
class OpenPaiOpener:
    """Implements `components.platform.files.StoreOpener`."""

    request: StoreRequest

    def bucket(self, name: str) -> Store:
        if self._storage and not _as_mapping(self.request.where.config.get(BUCKET_KEY)):
            raise TransferError(self._on_storage(str(self._storage.get("folder") or "")))
        return self._s3().bucket(name)

    def folder(self, address: str) -> tuple[Store, str]:
        parts = urlsplit(address)
        if parts.scheme == "file":
            path = unquote(parts.path)
            if self.request.where.cloud is None or self.request.purpose != "list":
                raise TransferError(self._on_storage(path))
            return cast(Store, LocalStorage(self._local_folder(""))), self._below(path)
        return self._s3().folder(address)

    @property
    def _storage(self) -> Mapping[str, Any]:
        return _as_mapping(self.request.where.config.get(STORAGE_KEY))

    @property
    def _name(self) -> str:
        return str(self._storage.get("name") or "")

    def _below(self, path: str) -> str:
        """A path in a task, as a path in the storage."""
        return path.removeprefix(f"{self._storage.get('mount') or f'/mnt/{self._name}'}/")

    def _local_folder(self, below: str) -> Path:
        assert self.request.where.cloud is not None
        return Path(storages_folder(self.request.where.cloud.home)) / self._name / below.lstrip("/")

    def _on_storage(self, path: str) -> str:
        """The reason why nothing can be transferred, and the place of the files. A job may name any folder."""
        name, below = self._name, self._below(path)
        called = f"the storage {name}" if name else "a storage"
        inside = f", in {terminal_line(below)}" if below else ""
        if self.request.where.cloud is not None:
            folder = terminal_line(str(self._local_folder(below)))
            where = f"The local cloud keeps them in {folder}: copy them from there"
        else:
            where = (
                "OpenPAI has no API for the files of a storage: mount it here, as its page in the web portal says, "
                "and copy them"
            )
        return f"runs of this stack keep their files on {called} of the cluster{inside}\n{where}"

    def _s3(self) -> StoreOpener:
        bucket = _as_mapping(self.request.where.config.get(BUCKET_KEY))
        # The platform whose client we reuse, and the keys of a stack file that configure it.
        name, row = next((name, row) for name, row in platforms().items() if row.stores == "s3")
        namespace = row.region.key.partition(":")[0] if row.region else name
        where = {f"{namespace}:{key}": bucket.get(key) for key in ("region", "endpoint")}
        config = {key: value for key, value in where.items() if isinstance(value, str) and value}
        return require_capability(name, StoreOpeners).make(
            replace(self.request, where=replace(self.request.where, config=config))
        )


@dataclass(frozen=True)
class LocalStorage:
    """The part of `Store` that lists: a storage of the local cluster is a folder of this machine. Tasks write there, so
    no link in it is followed, and nothing is read."""

    root: Path

    @property
    def address(self) -> str:
        return str(self.root)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        top = self.root / prefix
        if top.resolve() != self.root.resolve() / prefix.rstrip("/"):
            return
        for folder, below, names in os.walk(top):
            below.sort()
            for name in sorted(names):
                status = os.lstat(os.path.join(folder, name))
                if stat.S_ISREG(status.st_mode):
                    path = os.path.relpath(os.path.join(folder, name), self.root)
                    changed = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
                    yield StoredObject(path, status.st_size, "", "", changed)


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def open_openpai_store(request: StoreRequest) -> OpenPaiOpener:
    return OpenPaiOpener(request)


STORE_OPENERS = StoreOpeners(open_openpai_store)
