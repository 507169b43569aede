# SPDX-License-Identifier: Apache-2.0
"""The states that resources go through, as a table; a kind names its row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lifecycle:
    """What a client reads while a resource is made, when it is there, while it goes, and once it is gone.

    Each passage is instant unless a fault asks for a longer one.
    An empty `gone` means that it is then not found.
    """

    making: str
    ready: str
    leaving: str
    gone: str


NETWORK = Lifecycle("PROVISIONING", "AVAILABLE", "TERMINATING", "TERMINATED")
IDENTITY = Lifecycle("CREATING", "ACTIVE", "DELETING", "DELETED")
REGISTRY = Lifecycle("AVAILABLE", "AVAILABLE", "DELETING", "DELETED")
LOGGING = Lifecycle("CREATING", "ACTIVE", "DELETING", "")
PROJECT = Lifecycle("ACTIVE", "ACTIVE", "DELETING", "DELETED")
JOB = Lifecycle("CREATING", "ACTIVE", "DELETING", "DELETED")
JOB_RUN = Lifecycle("ACCEPTED", "ACCEPTED", "DELETED", "DELETED")

RUN_ACTIVE = frozenset({"ACCEPTED", "IN_PROGRESS", "CANCELING"})
RUN_TERMINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELED", "NEEDS_ATTENTION", "DELETED"})
