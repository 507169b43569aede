# SPDX-License-Identifier: Apache-2.0
# A service of a disturbed node: sends a signal to everything else that its launcher has started, after some seconds:
# `python -c TEXT SIGKILL 2.5 SERVICE…`. Rehearsals put the text below this line into the node's launch document
# (trainyard/rehearsal/faults.py).
# ---
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

end, own = time.monotonic() + float(sys.argv[2]), [os.getpid()]
if sys.argv[3:]:
    own.append(subprocess.Popen(sys.argv[3:]).pid)


def end_service(number: int, _: object) -> None:
    for pid in own[1:]:
        os.kill(pid, number)
    sys.exit(0)


signal.signal(signal.SIGTERM, end_service)
time.sleep(max(0.0, end - time.monotonic()))
children: dict[int, list[int]] = {}
for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
    with contextlib.suppress(OSError):  # it has ended
        pid, parent = int(stat.parent.name), int(stat.read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(pid)
found = children.get(os.getppid(), [])
for pid in found:
    found += [] if pid in own else children.get(pid, [])
for pid in found:
    if pid not in own:
        with contextlib.suppress(OSError):
            os.kill(pid, getattr(signal, sys.argv[1]))
signal.pause()
