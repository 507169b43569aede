# SPDX-License-Identifier: Apache-2.0
"""A filter of system calls for the processes of a node (seccomp): a program that the kernel runs before each call.

It refuses calls that reach parts of the kernel which namespaces do not separate, and which training does not use. That
leaves fewer of the kernel's vulnerabilities open. All processes of the node inherit the filter, and cannot remove it.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from typing import NamedTuple

from localcloud.hosts import kernel


class RefusedCall(NamedTuple):
    """A system call, its numbers (None: the processor does not have it), and the error that a program gets."""

    name: str
    x86_64: int | None
    aarch64: int | None
    error: int
    why: str


class Processor(NamedTuple):
    """A processor's native calls: the kernel's number for the processor (`AUDIT_ARCH_*`), and the calls that make
    sockets. Calls with numbers from `foreign` on belong to another ABI: x32 on x86-64."""

    architecture: int
    socket: int
    socketpair: int
    foreign: int | None


# ENOSYS, as by kernels without the call: then libraries use other calls. EPERM, as by kernels whose settings forbid the
# call, and by container runtimes: programs expect that.
REFUSED = (
    RefusedCall("io_uring_setup", 425, 425, errno.ENOSYS, "bypasses the filter; many vulnerabilities a year"),
    RefusedCall("io_uring_enter", 426, 426, errno.ENOSYS, "as io_uring_setup"),
    RefusedCall("io_uring_register", 427, 427, errno.ENOSYS, "as io_uring_setup"),
    RefusedCall("add_key", 248, 217, errno.EPERM, "keeps data in the kernel, by user and not by node"),
    RefusedCall("request_key", 249, 218, errno.EPERM, "starts a program of the machine, outside of the node"),
    RefusedCall("keyctl", 250, 219, errno.EPERM, "as add_key; CVE-2016-0728"),
    RefusedCall("bpf", 321, 280, errno.EPERM, "programs inside the kernel; CVE-2017-16995, CVE-2021-3490"),
    RefusedCall("userfaultfd", 323, 282, errno.EPERM, "pauses the kernel inside a call, which helps to win races"),
    RefusedCall("perf_event_open", 298, 241, errno.EPERM, "measures the processor, others' work too; CVE-2013-2094"),
    RefusedCall("fanotify_init", 300, 262, errno.EPERM, "watches whole file systems; CVE-2022-1998"),
    RefusedCall("open_by_handle_at", 304, 265, errno.EPERM, "opens files outside of mounts; left Docker in 2014"),
    RefusedCall("syslog", 103, 116, errno.EPERM, "the machine's own log; some systems show it to everybody"),
    RefusedCall("vmsplice", 278, 75, errno.ENOSYS, "lends pages to pipes; CVE-2008-0600, CVE-2020-29374"),
    RefusedCall("modify_ldt", 154, None, errno.ENOSYS, "segments for 16-bit programs; CVE-2015-5157, CVE-2017-17053"),
)
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
# By `os.uname().machine`.
PROCESSORS = {"x86_64": Processor(0xC000003E, 41, 53, 0x40000000), "aarch64": Processor(0xC00000B7, 198, 199, None)}
ALLOW, KILL = 0x7FFF0000, 0x80000000
_ERROR = 0x00050000
# Operations of classic BPF on 32-bit words, and the positions of a call's number, architecture and first argument. Only
# the low half of the argument is read: both processors are little-endian, and families are 32-bit numbers.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
# A debugger sets this number to skip a call. It has set the result already.
_LEFT_OUT = 0xFFFFFFFF


def why_unfilterable() -> str:
    """Why this machine cannot have the filter; empty if it can."""
    machine = os.uname().machine
    if machine not in PROCESSORS:
        return f"trainyard has no filter of system calls for {machine}"
    return "" if kernel.has_filters() else "its kernel has no filters of system calls (seccomp, Linux 4.17)"


def install_filter() -> None:
    """Installs the filter for this process and all its later child processes. It cannot be removed."""
    kernel.filter_calls(build_filter(os.uname().machine))


def build_filter(machine: str, refused: Iterable[RefusedCall] = REFUSED) -> bytes:
    """The filter for a processor, in the kernel's format."""
    processor = PROCESSORS[machine]
    steps = [
        _filter_step(_LOAD, _ARCHITECTURE),
        _filter_step(_EQUAL, processor.architecture, skip=1),
        # Calls of other ABIs, such as of 32-bit programs, are killed: with an error they could not even exit.
        _filter_step(_RETURN, KILL),
        _filter_step(_LOAD, _NUMBER),
        *_answer_steps(_EQUAL, _LEFT_OUT, ALLOW),
    ]
    if processor.foreign is not None:
        steps += _answer_steps(_AT_LEAST, processor.foreign, _ERROR | errno.ENOSYS)
    for call in refused:
        number = getattr(call, machine)
        if number is not None:
            steps += _answer_steps(_EQUAL, number, _ERROR | call.error)
    return b"".join([*steps, *_socket_steps(processor), _filter_step(_RETURN, ALLOW)])


def _socket_steps(processor: Processor) -> list[bytes]:
    """The steps for calls that make sockets. Other calls skip them."""
    steps = [_filter_step(_LOAD, _FIRST_ARGUMENT)]
    for family in FAMILIES:
        steps += _answer_steps(_EQUAL, family, ALLOW)
    steps.append(_filter_step(_RETURN, _ERROR | errno.EAFNOSUPPORT))
    return [
        _filter_step(_EQUAL, processor.socket, skip=1),
        _filter_step(_EQUAL, processor.socketpair, otherwise=len(steps)),
        *steps,
    ]


def _answer_steps(comparison: int, value: int, answer: int) -> list[bytes]:
    return [_filter_step(comparison, value, otherwise=1), _filter_step(_RETURN, answer)]


def _filter_step(operation: int, value: int, skip: int = 0, otherwise: int = 0) -> bytes:
    """One `struct sock_filter`. A comparison skips `skip` steps if it is true, and `otherwise` steps if not."""
    return struct.pack("=HBBI", operation, skip, otherwise, value)
