# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends a test run as Ctrl-C does, so that fixtures end what they have started, such as local clouds.

A runner's timeout and a cancelled job send SIGTERM. By default, Python would end at once.
"""

import os
import signal
import threading
from contextlib import suppress
from typing import NoReturn

import psutil
import pytest


def pytest_configure(config: pytest.Config) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    # The controlling process has no children but the workers, and each worker has its own clouds.
    controls = bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")

    def end(number: int, frame: object) -> NoReturn:
        # A second SIGTERM must not interrupt the fixtures. It is handled and not ignored, because processes that are
        # started meanwhile would inherit an ignored signal.
        signal.signal(signal.SIGTERM, lambda *_: None)
        for child in psutil.Process(os.getpid()).children() if controls else ():
            with suppress(psutil.NoSuchProcess):
                child.terminate()
        raise KeyboardInterrupt("SIGTERM")

    signal.signal(signal.SIGTERM, end)
