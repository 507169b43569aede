# SPDX-License-Identifier: Apache-2.0
"""The states that resources go through, as a table. Each kind names its row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lifecycle:
    """The state that a client reads while a resource is created, when it is ready, while it is deleted, and afterwards.

    Each transition is instant unless a fault prolongs it. An empty `gone` means that a deleted resource is not found.
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
