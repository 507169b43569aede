# SPDX-License-Identifier: Apache-2.0
"""Oracle's SDK, imported when first needed and by one thread at a time."""

import threading
from functools import cache
from importlib import import_module
from typing import Any

_LOCK = threading.RLock()


def module(name: str) -> Any:
    """Imports `oci.<name>`, one thread at a time. The engine asks about many resources at once, and the SDK's modules
    import each other in circles: two threads at once would see modules that are only half imported."""
    with _LOCK:
        return _imported(name)


@cache
def _imported(name: str) -> Any:
    return import_module(f"oci.{name}")
