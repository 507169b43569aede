# SPDX-License-Identifier: Apache-2.0
"""What an exit code says about a retry: a failure is transient, permanent, or of an unknown kind."""

from __future__ import annotations

import re
import signal

# EX_TEMPFAIL and EX_CONFIG of sysexits; what a shell adds to the number of the signal that ended a process.
TEMPORARY, CONFIGURATION, SIGNALLED = 75, 78, 128
# The code of `timeout`. The network or the script may cause a stall, so it is a failure of unknown kind.
STALLED = 124
TRANSIENT, PERMANENT, UNKNOWN = "transient", "permanent", "unknown"
# Whatever is not here is unknown.
KINDS = {
    TEMPORARY: (TRANSIENT, "a temporary failure"),
    2: (PERMANENT, "wrong arguments, or a script that is not there"),
    64: (PERMANENT, "wrong usage"),
    STALLED: (UNKNOWN, "stalled, or out of time"),
    CONFIGURATION: (PERMANENT, "wrong configuration"),
    126: (PERMANENT, "cannot be executed"),
    127: (PERMANENT, "is not there"),
    SIGNALLED + signal.SIGILL: (PERMANENT, "was built for another processor"),
}

# What the last line of a failed command says about the cause, beside the code.
SYMPTOMS = {
    re.compile(
        "name resolution|Name or service not known|[Ff]ailed to resolve|[Cc]ould not resolve host|"
        "Network is unreachable"
    ): "it asked for a host that this node cannot reach. Bring what it downloads with `trainyard data put`, or let"
    " nodes out with `nat: true` (docs/data.md)"
}

# A failure that mentions a connection or a wait may have its cause in another rank, which ended or hangs.
PEER_SYMPTOM = "it lost a connection, or waited too long for one, so another rank may be the cause"
# What a node had used up when its processes failed (launcher/used_up.py).
MEMORY_SYMPTOM = "the kernel ended processes of this node, because it used all its memory"
FULL_SYMPTOM = "was full"
# `rank 1 (worker-0) failed as well, with code 3`: although it lost no other rank.
ALSO_FAILED = "failed as well, with"
_LOST_PEER = re.compile(
    "[Cc]onnection (?:was )?(?:closed|reset|refused|aborted|lost)|[Bb]roken ?[Pp]ipe|[Tt]imed[ -]?out|TimeoutError|"
    "time-?out|connectFullMesh|remote process exited|monitoredBarrier|DistNetworkError|CommClosedError|KilledWorker|"
    "Nanny failed to start|ActorDiedError|ActorUnavailableError|NodeDiedError|HorovodInternalError"
)


def symptom_of(last_line: str) -> str:
    """What the last line of output says about the cause; empty if nothing is known."""
    return next((words for pattern, words in SYMPTOMS.items() if pattern.search(last_line)), "")


def has_lost_peer(last_line: str) -> bool:
    """Whether the last line of output speaks of a connection that broke, or of a wait that was too long."""
    return _LOST_PEER.search(last_line) is not None


def failure_kind(code: int) -> str:
    """The kind of a failure, by which launcher/retries.py decides on a retry."""
    return KINDS.get(code, (UNKNOWN, ""))[0]


def of_process(returncode: int) -> int:
    """A process's return code in the form of a shell."""
    return SIGNALLED - returncode if returncode < 0 else returncode


def describe_exit(code: int) -> str:
    """For people: `code 3`, `SIGKILL (code 137)`."""
    if code > SIGNALLED:
        try:
            return f"{signal.Signals(code - SIGNALLED).name} (code {code})"
        except ValueError:
            pass
    why = KINDS.get(code, ("", ""))[1]
    return f"code {code} ({why})" if why else f"code {code}"


def describe_failure(code: int, *symptoms: str) -> str:
    """The code, and what is known about its cause: `code 1: it lost a connection; /tmp was full`."""
    known = "; ".join(filter(None, symptoms))
    return describe_exit(code) + (f": {known}" if known else "")
