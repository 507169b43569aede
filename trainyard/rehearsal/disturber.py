# SPDX-License-Identifier: Apache-2.0
# A service of each node of a disturbed run. On the victim, it sends a signal to everything else that its launcher has
# started, or fills the disk, after some seconds: `python -c TEXT SIGKILL 2.5 RANK VICTIM SERVICE…`. Rehearsals put the
# text below this line into the nodes' launch documents (trainyard/rehearsal/faults.py), where words in braces are
# placeholders.
# ---
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

action, seconds, rank, victim = sys.argv[1:5]
end, own = time.monotonic() + float(seconds), [os.getpid()]
if sys.argv[5:]:
    own.append(subprocess.Popen(sys.argv[5:]).pid)


def end_service(number: int, _: object) -> None:
    for pid in own[1:]:
        os.kill(pid, number)
    sys.exit(0)


signal.signal(signal.SIGTERM, end_service)
time.sleep(max(0.0, end - time.monotonic()))
while rank != victim:
    signal.pause()
os.write(1, b"the rehearsal disturbs this node: " + action.encode() + b"\n")
if action == "FILL":
    with contextlib.suppress(OSError), open(".filled-by-the-rehearsal", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
    signal.pause()
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
            os.kill(pid, getattr(signal, action))
signal.pause()
