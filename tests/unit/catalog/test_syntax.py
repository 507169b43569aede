# SPDX-License-Identifier: Apache-2.0
"""Parsing of code in several threads at once, while the garbage collector runs finalizers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# In a process of its own: it changes when Python collects garbage.
_SWITCHES = """
import ast, gc, threading, time
from pathlib import Path
from catalog.syntax import parse

class Slow:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.0005)  # lets another thread go on

def work(depth, end):
    if depth:
        return work(depth - 1, end)
    while time.monotonic() < end and not failures:
        Slow(), Slow()
        try:
            parse(source)
        except SystemError as error:
            failures.append(str(error))

gc.set_threshold(50)
source, failures = Path(ast.__file__).read_text()[:20000].rpartition("\\ndef")[0], []
threads = [threading.Thread(target=work, args=(5 * one, time.monotonic() + 2)) for one in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failures)
"""


def test_threads_do_not_disturb_one_another() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _SWITCHES], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
    )
    assert (told.stdout, told.stderr) == ("[]\n", "")
