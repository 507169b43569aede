# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends a test run as Ctrl-C does: fixtures take down what they brought up, local clouds first of all.

A runner's `timeout`, or a job that is cancelled, sends it. Python's own way is to end at once.
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
    # Its only children are the workers: each has clouds of its own.
    controls = bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")

    def end(number: int, frame: object) -> NoReturn:
        # A second one must not cut the taking down short, and what is started meanwhile must not inherit a signal that
        # is ignored.
        signal.signal(signal.SIGTERM, lambda *_: None)
        for child in psutil.Process(os.getpid()).children() if controls else ():
            with suppress(psutil.NoSuchProcess):
                child.terminate()
        raise KeyboardInterrupt("SIGTERM")

    signal.signal(signal.SIGTERM, end)
