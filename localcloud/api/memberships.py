# SPDX-License-Identifier: Apache-2.0
"""Who is in which group."""

from __future__ import annotations

from localcloud.api import clock, tenancy
from localcloud.api.http import Json
from localcloud.api.ocids import new_ocid
from localcloud.api.store import Resource, Store

MEMBERSHIP = "user-group-membership"


def add_membership(store: Store, user: str, group: str, identifier: str = "") -> Resource:
    identifier = identifier or new_ocid("groupmembership", "")
    body: Json = {
        "id": identifier,
        "compartmentId": tenancy.TENANCY,
        "userId": user,
        "groupId": group,
        "timeCreated": clock.rfc3339(clock.now()),
    }
    return store.add(Resource(identifier, MEMBERSHIP, tenancy.TENANCY, user, "ACTIVE", body, parent=group))


def groups_of(store: Store, user: str) -> list[Resource]:
    """The groups that a user is in."""
    found = (store.get(row.parent) for row in store.live(MEMBERSHIP, name=user))
    return [group for group in found if group and group.live]
