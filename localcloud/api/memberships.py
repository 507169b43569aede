# SPDX-License-Identifier: Apache-2.0
"""Which user is in which group."""

from __future__ import annotations

from localcloud.api import clock, tenancy
from localcloud.api.http import Json
from localcloud.api.ocids import new_ocid
from localcloud.api.store import StateStore, StoredResource

MEMBERSHIP = "user-group-membership"


def add_membership(store: StateStore, user: str, group: str, identifier: str = "") -> StoredResource:
    identifier = identifier or new_ocid("groupmembership", "")
    body: Json = {
        "id": identifier,
        "compartmentId": tenancy.TENANCY,
        "userId": user,
        "groupId": group,
        "timeCreated": clock.rfc3339(clock.now()),
    }
    return store.add(StoredResource(identifier, MEMBERSHIP, tenancy.TENANCY, user, "ACTIVE", body, parent=group))


def groups_of(store: StateStore, user: str) -> list[StoredResource]:
    """The groups that a user is in."""
    groups = (store.get(row.parent) for row in store.live(MEMBERSHIP, name=user))
    return [group for group in groups if group and group.live]
