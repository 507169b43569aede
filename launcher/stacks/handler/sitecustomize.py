# SPDX-License-Identifier: Apache-2.0
"""Every Python below the launcher imports this as it starts: the folder is the first of its PYTHONPATH, and has nothing
else. On a signal, the main thread's stack is written into a file in memory, which the launcher reads through /proc
(launcher/stacks/taking.py): on signal 41 by Python's own faulthandler, while the thread waits in C code, and runs no
Python; on signal 42 by Python itself, between two steps of a thread that computes. Python writes all threads, none of
which takes a step meanwhile.

Then the `sitecustomize` of the team or the image takes this module's place. Nothing here may disturb training, and any
Python may read this file.
"""

import sys


def _register_handler():  # type: ignore[no-untyped-def]
    # `signal` would cost a millisecond.
    import _signal  # type: ignore[import-not-found]
    import _thread
    import atexit
    import faulthandler
    import os

    if _signal.getsignal(41) == _signal.SIG_DFL:
        # No folder fills up with these files. Python 3.7 does not have them, and gets no handler.
        file = os.memfd_create("trainyard-stacks")  # novm
        # As Python ends, it puts back what was there before. A late signal must not end the process.
        _signal.signal(41, _signal.SIG_IGN)
        faulthandler.register(41, file, all_threads=False)

        def write_places(_number, frame):  # type: ignore[no-untyped-def]
            try:
                others = {ident: top for ident, top in sys._current_frames().items() if ident != _thread.get_ident()}
                named = getattr(sys.modules.get("threading"), "_active", {})
                lines = []
                for ident, top in [(0, frame), *others.items()][:100]:
                    lines += [f"Thread {getattr(named.get(ident), 'name', ident)}"] if ident else []
                    end = len(lines) + 100
                    while top is not None and len(lines) < end:
                        lines.append(f'  File "{top.f_code.co_filename}", line {top.f_lineno} in {top.f_code.co_name}')
                        top = top.f_back
                os.write(file, "\n".join([*lines, ""]).encode(errors="replace"))
            except Exception:
                pass

        if _signal.getsignal(42) == _signal.SIG_DFL:
            _signal.signal(42, write_places)
            # Calls of the system that it interrupts go on.
            _signal.siginterrupt(42, False)
            atexit.register(_signal.signal, 42, _signal.SIG_IGN)


try:  # noqa: SIM105  # contextlib is not loaded yet
    _register_handler()  # type: ignore[no-untyped-call]
except Exception:
    pass

# Look for the next one, as if this one were not there.
_own = sys.modules.pop(__name__)
sys.path[:] = [folder for folder in sys.path if folder != __file__.rpartition("/")[0]]
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
except ImportError as _error:
    if getattr(_error, "name", "sitecustomize") != "sitecustomize":
        raise
    sys.modules[__name__] = _own
