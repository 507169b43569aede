# SPDX-License-Identifier: Apache-2.0
"""Oracle's SDK, imported when first needed and by one thread at a time."""

import threading
from functools import cache
from importlib import import_module
from typing import Any

_LOCK = threading.RLock()


def module(name: str) -> Any:
    """`oci.<name>`. The engine asks about many resources at once, and the SDK's modules import one another in circles:
    threads that enter such a circle at different points see halves of modules."""
    with _LOCK:
        return _imported(name)


@cache
def _imported(name: str) -> Any:
    return import_module(f"oci.{name}")
