# SPDX-License-Identifier: Apache-2.0
"""What an exit code says about trying again: a failure is transient, permanent, or of an unknown kind."""

from __future__ import annotations

import signal

# EX_TEMPFAIL and EX_CONFIG of sysexits; a shell's way to say which signal ended a process.
TEMPORARY, CONFIGURATION, SIGNALLED = 75, 78, 128
# As `timeout` ends. A hang may come from the network or from the script: it counts as a failure like any other.
STALLED = 124
TRANSIENT, PERMANENT, UNKNOWN = "transient", "permanent", "unknown"
# Whatever is not here is unknown.
KINDS = {
    TEMPORARY: (TRANSIENT, "says itself that another try may do"),
    2: (PERMANENT, "wrong arguments, or a script that is not there"),
    64: (PERMANENT, "wrong usage"),
    STALLED: (UNKNOWN, "stalled, or out of time"),
    CONFIGURATION: (PERMANENT, "wrong configuration"),
    126: (PERMANENT, "cannot be executed"),
    127: (PERMANENT, "is not there"),
    SIGNALLED + signal.SIGILL: (PERMANENT, "was built for another processor"),
}


def kind(code: int) -> str:
    """What trying again may mend: launcher/retries.py goes by it."""
    return KINDS.get(code, (UNKNOWN, ""))[0]


def of_process(returncode: int) -> int:
    """A process's return code as a shell would tell it."""
    return SIGNALLED - returncode if returncode < 0 else returncode


def described(code: int) -> str:
    """For people: `code 3`, `SIGKILL (code 137)`."""
    if code > SIGNALLED:
        try:
            return f"{signal.Signals(code - SIGNALLED).name} (code {code})"
        except ValueError:
            pass
    why = KINDS.get(code, ("", ""))[1]
    return f"code {code} ({why})" if why else f"code {code}"
