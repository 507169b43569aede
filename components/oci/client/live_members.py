# SPDX-License-Identifier: Apache-2.0
"""Finds users who came into the groups of a stack's users after the stack was made.

A stack's state has the groups, not their members. So those who were there before are taken as meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from components.oci.client.live_policies import groups_of_users
from components.oci.iam.judge import DEFAULT_DOMAIN
from components.oci.iam.statement import Identified, Named
from components.platform.live import LiveQuestion, Reading

MEMBERSHIP = "oci:Identity/userGroupMembership:UserGroupMembership"


class MemberReader:
    """`lists`, `read_user`: None for what the caller may not read, which is recorded."""

    def __init__(
        self,
        question: LiveQuestion,
        tenancy: str,
        reading: Reading,
        lists: Callable[..., list[Any] | None],
        read_user: Callable[[str], Any],
    ) -> None:
        self._question, self._tenancy, self._reading = question, tenancy, reading
        self._lists, self._read_user = lists, read_user

    def read(self, made: datetime | None) -> None:
        """`made`: when the oldest part of the stack was made."""
        for group in sorted(groups_of_users(self._question.declared), key=str) if made else ():
            for name, ocid in self._groups(group):
                listed = self._lists("identity", "list_user_group_memberships", self._tenancy, group_id=ocid)
                for membership in listed or ():
                    if made and membership.time_created > made:
                        self._add(membership, name)

    def _groups(self, group: Named | Identified) -> Iterator[tuple[str, str]]:
        """The name and the OCID of a group of the tenancy. Groups of identity domains are not read yet."""
        if isinstance(group, Identified):
            yield group.ocid, group.ocid
        elif group.domain not in (None, DEFAULT_DOMAIN):
            self._reading.unread(f"members of the group {group.domain}/{group.name}: identity domains are not read yet")
        else:
            for found in self._lists("identity", "list_groups", self._tenancy) or ():
                if found.name.lower() == group.name.lower():
                    yield found.name, found.id

    def _add(self, membership: Any, group: str) -> None:
        user = self._read_user(membership.user_id)
        title = f"user {user.name if user is not None else membership.user_id}"
        if title not in self._question.known:
            inputs = {"groupId": membership.group_id, "userId": membership.user_id}
            words = f"{title} in the group {group}, since {membership.time_created:%Y-%m-%d}"
            self._reading.add(MEMBERSHIP, membership.id, inputs, words)
