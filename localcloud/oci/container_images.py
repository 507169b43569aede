# SPDX-License-Identifier: Apache-2.0
"""Parses what container tools send: addresses of images, and manifests.

The results are validated: a digest has 64 hexadecimal digits, a size is a number. So other modules can use them as
paths or numbers. No other module parses an address, so that a push is authorized and carried out for one repository.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localcloud.files import NotRegularFileError, open_regular_file
from localcloud.server.http import LARGEST, parse_strict_json

MAXIMUM_BYTES = 4 * 1024 * 1024
_MOST_LAYERS, _MOST_WORDS = 1000, 1000
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}")


class UnreadableManifestError(Exception):
    """A manifest cannot be read. The text says why."""


@dataclass(frozen=True)
class Digest:
    """The name of a blob. Every instance is a valid digest."""

    text: str

    def __post_init__(self) -> None:
        if not is_digest(self.text):
            raise UnreadableManifestError(f"{self.text[:80]!r} is not a digest")

    @property
    def hexadecimal(self) -> str:
        return self.text.removeprefix("sha256:")


@dataclass(frozen=True)
class Layer:
    digest: Digest
    size: int


@dataclass(frozen=True)
class Manifest:
    """The manifest of one image for one platform."""

    config: Digest
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class ImageStart:
    """The image's own entrypoint and command."""

    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]


def is_digest(text: str) -> bool:
    return bool(_DIGEST.fullmatch(text))


def read_manifest(content: bytes) -> Manifest | Digest:
    """The manifest; for an index the digest of its first manifest, because all nodes here have the same platform."""
    stated = _require_mapping(_parse_manifest_json(content), "the manifest")
    if "manifests" in stated:
        listed = _require_list(stated["manifests"], "manifests", _MOST_LAYERS)
        if not listed:
            raise UnreadableManifestError("manifests is empty")
        return _digest_of(listed[0], "manifests[0]")
    stated_layers = _require_list(stated.get("layers"), "layers", _MOST_LAYERS)
    config, layers = _digest_of(stated.get("config"), "config"), []
    for layer in stated_layers:
        digest, size = _digest_of(layer, "a layer"), _require_mapping(layer, "a layer").get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= LARGEST:
            raise UnreadableManifestError("the size of a layer is not a number of bytes")
        layers.append(Layer(digest, size))
    return Manifest(config, tuple(layers))


def read_start(content: bytes) -> ImageStart:
    """Reads an image's entrypoint and command from its configuration."""
    config = _require_mapping(
        _require_mapping(_parse_manifest_json(content), "the configuration").get("config") or {}, "config"
    )
    return ImageStart(_require_words(config.get("Entrypoint"), "Entrypoint"), _require_words(config.get("Cmd"), "Cmd"))


def media_type(content: bytes) -> str:
    """The media type under which a tool gets a manifest."""
    stated = _require_mapping(_parse_manifest_json(content), "the manifest")
    named = stated.get("mediaType")
    if isinstance(named, str) and _MEDIA_TYPE.fullmatch(named):
        return named
    return f"application/vnd.oci.image.{'index' if 'manifests' in stated else 'manifest'}.v1+json"


def read_blob(path: Path) -> bytes:
    """The content of a small blob."""
    try:
        with open_regular_file(path) as file:
            if os.fstat(file.fileno()).st_size > MAXIMUM_BYTES:
                raise UnreadableManifestError(f"it is larger than {MAXIMUM_BYTES} bytes")
            return file.read(MAXIMUM_BYTES + 1)
    except NotRegularFileError as error:
        raise UnreadableManifestError(str(error)) from None


def is_file(path: Path) -> bool:
    """Whether the path is a regular file, not a link, folder or device."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _parse_manifest_json(content: bytes) -> Any:
    try:
        return parse_strict_json(content)
    except (ValueError, RecursionError):
        raise UnreadableManifestError("it is not JSON") from None


def _require_mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableManifestError(f"{what} is not an object")
    return value


def _require_list(value: Any, what: str, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise UnreadableManifestError(f"{what} is not a list of at most {most} entries")
    return value


def _digest_of(value: Any, what: str) -> Digest:
    return Digest(str(_require_mapping(value, what).get("digest")))


def _require_words(value: Any, what: str) -> tuple[str, ...]:
    words = _require_list(value or [], what, _MOST_WORDS)
    if not all(isinstance(word, str) for word in words):
        raise UnreadableManifestError(f"{what} is not a list of texts")
    return tuple(words)


_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._/-][a-z0-9]+)*")
_ADDRESS = re.compile(r"([^/]+)/([^/]+)/([^:@]+?)(?::([\w.-]+))?(?:@(sha256:[0-9a-f]{64}))?")


@dataclass(frozen=True)
class ImageAddress:
    """A full address, such as `iad.ocir.io/namespace/team/name:tag`."""

    registry: str
    namespace: str
    repository: str
    tag: str
    digest: str


def parse_image_address(address: Any) -> ImageAddress | None:
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    return ImageAddress(match[1], match[2], match[3], match[4] or "", match[5] or "") if match else None


def pushed_repository(address: Any) -> str:
    """The repository in an image address; empty for a text that is not an address."""
    parts = parse_image_address(address)
    return parts.repository if parts else ""


def is_repository(name: str) -> bool:
    """Whether a repository may have this name."""
    return bool(_REPOSITORY.fullmatch(name))
