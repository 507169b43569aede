# SPDX-License-Identifier: Apache-2.0
"""A stack file's configuration as Pulumi hands it to a program: texts, objects as JSON, secrets decrypted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

_SHORTEST = 8


def configuration(file: Path) -> tuple[dict[str, str], list[str]]:
    """The values, and the keys that hold a secret anywhere below."""
    written = yaml.safe_load(file.read_text("utf-8"))["config"]
    values = {key: value if isinstance(value, str) else "" for key, value in written.items()}
    secret = [key for key, value in written.items() if _holds_secret(value)]
    for key, value in written.items():
        opened = _opened(value)
        values[key] = opened if isinstance(opened, str) else json.dumps(opened)
    return values, secret


def _is_secret(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"secure"}


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return _is_secret(value) or any(map(_holds_secret, value.values()))
    return isinstance(value, list) and any(map(_holds_secret, value))


def _opened(value: Any) -> Any:
    """No key is at hand to decrypt with, and none is needed: the text in the file stands for the secret itself."""
    if _is_secret(value):
        return value["secure"]
    if isinstance(value, Mapping):
        return {key: _opened(item) for key, item in value.items()}
    return [_opened(item) for item in value] if isinstance(value, list) else value


def encrypted_texts(file: Path) -> tuple[str, ...]:
    """Every text that is encrypted in the file, the longest first. One of a few letters is no encrypted text."""
    found = set(_encrypted(yaml.safe_load(file.read_text("utf-8")).get("config")))
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST), key=lambda text: (-len(text), text)))


def _encrypted(value: Any) -> Iterator[str]:
    if _is_secret(value):
        if isinstance(value["secure"], str) and value["secure"]:
            yield value["secure"]
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _encrypted(item)
    elif isinstance(value, list):
        for item in value:
            yield from _encrypted(item)
