# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.support.without_seccomp COMMAND...`: runs a command as on a kernel without filters of system calls.
A filter refuses the call that installs filters."""

from __future__ import annotations

import errno
import os
import sys

from localcloud.hosts import kernel, syscall_filter
from localcloud.hosts.syscall_filter import RefusedCall

_SECCOMP = RefusedCall("seccomp", 317, 277, errno.ENOSYS, "")

if __name__ == "__main__":
    kernel.forbid_new_privileges()
    kernel.filter_calls(syscall_filter.build_filter(os.uname().machine, [_SECCOMP]))
    os.execvp(sys.argv[1], sys.argv[1:])
