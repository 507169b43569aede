# SPDX-License-Identifier: Apache-2.0
"""Which system calls the filter of nodes refuses: by an interpreter for both processors, and by this kernel."""

import errno
import json
import os
import subprocess
import sys

import pytest

from localcloud.hosts.syscall_filter import ALLOW, FAMILIES, KILL, PROCESSORS, REFUSED, build_filter
from tests.support.bpf import answer, steps_of

ERROR = 0x50000
# `AUDIT_ARCH_*` of linux/audit.h, native ones first: x86-64, i386, arm64, ARM, ARM with the other order of bytes,
# 64-bit RISC-V, POWER and s390.
ARCHITECTURES = (0xC000003E, 0x40000003, 0xC00000B7, 0x40000028, 0x28, 0xC00000F3, 0xC0000015, 0x80000016)
# As in socket.h; Python does not know all of them everywhere.
FAMILY_NUMBERS = {"PACKET": 17, "ALG": 38, "BLUETOOTH": 31, "VSOCK": 40, "XDP": 44, "CAN": 29, "TIPC": 30, "RDS": 21}


@pytest.mark.parametrize("machine", PROCESSORS)
def test_every_native_call_gets_the_answer_of_its_row(machine: str) -> None:
    filter_, processor = build_filter(machine), PROCESSORS[machine]
    expected = {getattr(row, machine): ERROR | row.error for row in REFUSED}
    sockets = {processor.socket, processor.socketpair}
    for number in {*range(1024), 0x3FFFFFFF, *expected} - sockets - {None}:
        assert answer(filter_, processor.architecture, number) == expected.get(number, ALLOW), number
    assert answer(filter_, processor.architecture, -1) == ALLOW, "a debugger leaves the call out"


@pytest.mark.parametrize("machine", PROCESSORS)
def test_any_call_of_another_architecture_kills(machine: str) -> None:
    filter_, native = build_filter(machine), PROCESSORS[machine].architecture
    others = {*ARCHITECTURES} - {native}
    assert len(others) == len(ARCHITECTURES) - 1
    answers = {answer(filter_, other, number) for other in others for number in (*range(1024), 0x40000000, -1)}
    assert answers == {KILL}


def test_x32_calls_fail_on_x86_64_only() -> None:
    numbers = [0x40000000 | number for number in range(1024)] + [0x7FFFFFFF, 0x80000000, 0xFFFFFFFE]
    for machine, expected in (("x86_64", ERROR | errno.ENOSYS), ("aarch64", ALLOW)):
        answers = {answer(build_filter(machine), PROCESSORS[machine].architecture, number) for number in numbers}
        assert answers == {expected}


@pytest.mark.parametrize("machine", PROCESSORS)
def test_only_four_socket_families_are_allowed(machine: str) -> None:
    filter_, processor = build_filter(machine), PROCESSORS[machine]
    refused = ERROR | errno.EAFNOSUPPORT
    for number in (processor.socket, processor.socketpair):
        for family in (*range(256), 0x7FFFFFFF, -1):
            expected = ALLOW if family in (1, 2, 10, 16) else refused
            assert answer(filter_, processor.architecture, number, family, 1, 0) == expected, family
            # The kernel reads 32 bits. Higher bits can neither hide a family nor pretend one.
            assert answer(filter_, processor.architecture, number, family & 0xFFFFFFFF | 1 << 40, 1, 0) == expected
    assert {int(family) for family in FAMILIES} == {1, 2, 10, 16}
    assert not {*FAMILY_NUMBERS.values()} & {*FAMILIES}


@pytest.mark.parametrize("machine", PROCESSORS)
def test_the_kernel_accepts_the_program(machine: str) -> None:
    steps = steps_of(build_filter(machine))
    assert len(steps) <= 4096, "BPF_MAXINSNS"
    for place, (_, skip, otherwise, _) in enumerate(steps):
        assert place + 1 + max(skip, otherwise) <= len(steps)
    assert steps[-1][0] == 0x06, "it ends with an answer"


# In a process of its own: a filter stays. Each refused call gets an error that the kernel itself never gives, so what
# is refused for another reason (a capability, a setting) does not count.
_TRIES = """
import ctypes, json, os, socket, sys
from localcloud.hosts import kernel, syscall_filter
machine = os.uname().machine
rows = [row._replace(error=3000 + place) for place, row in enumerate(syscall_filter.REFUSED)]
kernel.forbid_new_privileges()
kernel.filter_calls(syscall_filter.build_filter(machine, rows))
libc = ctypes.CDLL(None, use_errno=True)
def tried(number):
    ctypes.set_errno(0)
    return libc.syscall(number, 0, 0, 0, 0, 0, 0), ctypes.get_errno()
def made(family, make):
    try: make(family).close()
    except OSError as error: return error.errno
    return 0
def pair(family):
    first, second = socket.socketpair(family)
    second.close()
    return first
numbers = {row.name: number for row in rows if (number := getattr(row, machine)) is not None}
print(json.dumps({
    "calls": {name: tried(number) for name, number in numbers.items()},
    "expected": {row.name: [-1, row.error] for row in rows if row.name in numbers},
    "x32": tried(0x40000000 + 39),
    "sockets": [made(family, lambda f: socket.socket(f, socket.SOCK_DGRAM)) for family in range(64)],
    "pair": [made(family, pair) for family in (1, 40)],
    "process": os.getpid() == libc.getpid(),
}))
"""


@pytest.mark.skipif(os.uname().machine not in PROCESSORS, reason="no filter for this processor")
def test_the_filter_works_on_this_kernel() -> None:
    done = subprocess.run([sys.executable, "-c", _TRIES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    tried = json.loads(done.stdout)
    assert tried["calls"] == tried["expected"]
    assert tried["x32"] == [-1, errno.ENOSYS]
    # IPv6 may be missing from the kernel.
    families = {family for family, error in enumerate(tried["sockets"]) if error != errno.EAFNOSUPPORT}
    assert families in ({1, 2, 10, 16}, {1, 2, 16})
    assert tried["pair"] == [0, errno.EAFNOSUPPORT]
    assert tried["process"]
