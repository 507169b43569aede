# SPDX-License-Identifier: Apache-2.0
"""Debian's PyTorch 2 differs from PyPI's in two ways that scripts and libraries do not expect. It has no libuv, which
every TCPStore asks for, also that of torchrun. And it has MPI: Accelerate takes that on processors, and without mpirun
each process then trains alone. Here it behaves as PyPI's does. PyTorch calls `apply` at the end of its import.

A process group of gloo has threads that may hold the last reference to a tensor. One that lets go while the interpreter
ends is ended by it in the middle of a destructor, and the process aborts, although the script has succeeded. A model
of DDP keeps its group in a cycle, so the group is collected before the interpreter ends: that joins its threads.
"""

import atexit
import gc
from typing import Any


def apply() -> None:
    from torch.distributed import TCPStore, distributed_c10d  # type: ignore[import-not-found]

    distributed_c10d._MPI_AVAILABLE = False
    make_store: Any = TCPStore.__init__

    def make_without_libuv(store: Any, *words: Any, **named: Any) -> None:
        make_store(store, *words, **{**named, "use_libuv": False})

    TCPStore.__init__ = make_without_libuv
    atexit.register(gc.collect)
