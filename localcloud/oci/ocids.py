# SPDX-License-Identifier: Apache-2.0
"""OCIDs: random ones, and fixed ones for the resources that every local tenancy has. And lifecycles of resources."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass

REGIONLESS = frozenset({"tenancy", "compartment", "user", "group", "dynamicgroup", "policy"})


def _encode_base32(raw: bytes) -> str:
    return base64.b32encode(raw).decode().lower().rstrip("=")


def new_ocid(kind: str, region_key: str) -> str:
    return _join_ocid(kind, region_key, _encode_base32(os.urandom(35)))


def fixed_ocid(kind: str, name: str, region_key: str = "") -> str:
    """An OCID that is the same for the same name on all machines, so that a stack file can contain it."""
    return _join_ocid(
        kind, region_key, _encode_base32(hashlib.sha512(f"trainyard/{kind}/{name}".encode()).digest()[:35])
    )


def _join_ocid(kind: str, region_key: str, unique: str) -> str:
    return f"ocid1.{kind}.oc1.{'' if kind in REGIONLESS else region_key}.aaaaaaaa{unique[:52]}"


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
