# SPDX-License-Identifier: Apache-2.0
"""Pulumi's property values in Python: secrets are `Secret`, values known only after the update are `UNKNOWN`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Properties = dict[str, Any]

# Shorter secrets are not hidden in texts: they occur by chance so often that much of the output would be hidden.
_SHORTEST_TRACED_SECRET: Final = 4


@dataclass(frozen=True, repr=False)
class Secret:
    value: Any

    def __repr__(self) -> str:
        return "Secret(…)"


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"

    def __deepcopy__(self, memo: object) -> "_Unknown":
        return self


UNKNOWN: Final = _Unknown()


def canonical(value: Any) -> str:
    """The same text for equal values. A null property equals an absent one."""
    return json.dumps(_without_nulls(value), sort_keys=True, default=repr)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def reveal(value: Any) -> Any:
    """The same value with every `Secret` replaced by its content."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, Mapping):
        return {key: reveal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def has_unknown(value: Any) -> bool:
    if isinstance(value, Secret):
        return has_unknown(value.value)
    if isinstance(value, Mapping):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return value is UNKNOWN


def secret_texts(*values: Any) -> frozenset[str]:
    """Every secret text in these values."""
    texts = (text for value in values for text in _secret_leaves(value, inside=False))
    return frozenset(text for text in texts if len(text) >= _SHORTEST_TRACED_SECRET)


def _secret_leaves(value: Any, inside: bool) -> Iterator[str]:
    if isinstance(value, Secret):
        yield from _secret_leaves(value.value, inside=True)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secret_leaves(item, inside)
    elif isinstance(value, list):
        for item in value:
            yield from _secret_leaves(item, inside)
    elif inside and isinstance(value, str):
        yield value


def seal(value: Any, *models: Any) -> Any:
    """Marks secrets in `value`: values that are secret at the same place in a model, and texts that hold a secret."""
    texts = secret_texts(*models)
    for model in models:
        value = _seal_places(value, model)
    return _seal_texts(value, texts) if texts else value


def _seal_places(value: Any, model: Any) -> Any:
    if isinstance(model, Secret):
        return value if isinstance(value, Secret) else Secret(value)
    if isinstance(model, Mapping) and isinstance(value, Mapping):
        return {key: _seal_places(item, model.get(key)) for key, item in value.items()}
    if isinstance(model, list) and isinstance(value, list) and _has_secret(model):
        if len(model) == len(value):
            return [_seal_places(item, marked) for item, marked in zip(value, model, strict=True)]
        return Secret(value)
    return value


def _has_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_secret(item) for item in value.values())
    if isinstance(value, list):
        return any(_has_secret(item) for item in value)
    return isinstance(value, Secret)


def _seal_texts(value: Any, texts: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _seal_texts(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_seal_texts(item, texts) for item in value]
    if isinstance(value, str) and any(text in value for text in texts):
        return Secret(value)
    return value


def redact(message: str, texts: frozenset[str]) -> str:
    for text in sorted(texts, key=len, reverse=True):
        message = message.replace(text, "[secret]")
    return message
