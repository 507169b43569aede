# SPDX-License-Identifier: Apache-2.0
"""The numbers of system calls here are those of the kernel's own headers (Debian: linux-libc-dev)."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from localcloud.hosts.kernel import NUMBERS
from localcloud.hosts.syscall_filter import PROCESSORS, REFUSED

# The 64-bit processors of today share the generic numbers. A machine has x86-64's header only if that is its processor.
GENERIC = Path("/usr/include/asm-generic/unistd.h")
HEADERS = {"x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), "aarch64": GENERIC, "riscv64": GENERIC}
_MACHINES = Path("/usr/include/linux/elf-em.h")
_MACHINE_NAMES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_64_BIT, _LITTLE_ENDIAN = 0x80000000, 0x40000000


def _numbers(header: Path, prefix: str) -> Mapping[str, int]:
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    lines = re.findall(rf"^#define\s+{prefix}(\w+)\s+(\d+)", header.read_text(), re.MULTILINE)
    return {name: int(number) for name, number in lines}


@pytest.mark.parametrize("machine", PROCESSORS)
def test_refused_calls_have_the_kernels_numbers(machine: str) -> None:
    published, processor = _numbers(HEADERS[machine], "__NR_"), PROCESSORS[machine]
    ours = {row.name: getattr(row, machine) for row in REFUSED}
    assert ours == {name: published.get(name) for name in ours}
    assert (processor.socket, processor.socketpair) == (published["socket"], published["socketpair"])


@pytest.mark.parametrize("machine", HEADERS)
def test_calls_by_number_have_the_kernels_numbers(machine: str) -> None:
    published = _numbers(HEADERS[machine], "__NR_")
    assert {name: published[name] for name in NUMBERS[machine]} == NUMBERS[machine]


@pytest.mark.parametrize("machine", PROCESSORS)
def test_an_architecture_is_its_elf_machine_with_size_and_order(machine: str) -> None:
    number = _numbers(_MACHINES, "")[_MACHINE_NAMES[machine]]
    assert PROCESSORS[machine].architecture == number | _64_BIT | _LITTLE_ENDIAN
