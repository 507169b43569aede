# SPDX-License-Identifier: Apache-2.0
"""Debian's PyTorch 1.13 has a dataclass whose default is of a class that cannot be hashed. Python 3.11 refuses such
defaults, so `torch.distributed._shard` cannot be imported, and Lightning's Trainer imports it. Later releases of
PyTorch are right. Here the default's class gets the hash that all objects have, before Python looks.
"""

import dataclasses
from typing import Any

_PACKAGE = "torch.distributed._shard"
_get_field: Any = dataclasses._get_field  # type: ignore[attr-defined]


def _tolerant(owner: Any, name: str, *others: Any) -> Any:
    default = getattr(owner, name, None)
    if isinstance(default, dataclasses.Field):
        default = default.default
    kind = type(default)
    if kind.__module__.startswith(_PACKAGE) and kind.__hash__ is None:
        kind.__hash__ = object.__hash__
    return _get_field(owner, name, *others)


dataclasses._get_field = _tolerant  # type: ignore[attr-defined]
