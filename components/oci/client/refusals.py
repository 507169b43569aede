# SPDX-License-Identifier: Apache-2.0
"""What to do about a refused call: OCI answers alike for a bucket that is not there and for one that is not for you."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.tables import table
from components.oci import iam
from components.oci.iam.errors import StatementError
from components.oci.needs import Need, permissions_of, smallest_grant
from components.oci.stack import OciStack
from components.oci.statements import NARROWING, group_named, place_of
from components.platform.errors import ProviderError

_REFUSED = frozenset({"BucketNotFound", "NotAuthorizedOrNotFound", "NotAuthorized", "Forbidden"})


@dataclass(frozen=True)
class Caller:
    """Who asks for what: the words of the credentials, and the stack whose file names the users' group."""

    name: str
    purpose: str
    bucket: str
    compartment: str
    stack: OciStack | None = None
    local: bool = False

    def explain(self, error: ProviderError) -> ProviderError:
        """The same error, with what is missing and for whom if it may be a refusal."""
        if getattr(error.__cause__, "code", None) not in _REFUSED:
            return error
        return ProviderError(error.cause, "\n".join(self._remedy()))

    def _remedy(self) -> Iterator[str]:
        yield (
            f"Either there is no bucket `{self.bucket}`, or you may not do this with it: OCI gives the same answer for "
            "both. A bucket that a stack makes comes with the stack's first `up`."
        )
        yield f"You are {self.name}. If the bucket exists, a statement is missing for a group that you are in:"
        yield from (f"  {text}" for text in self.statements())
        yield "`trainyard access STACK` shows what the stack grants. New policies take a few minutes to take effect."
        if self.local:
            yield "On the local cloud, `trainyard cloud log` shows the call and who lacked what."

    def statements(self) -> tuple[str, ...]:
        """The least that lets the caller do all of this, not only the call that was refused first."""
        needed: dict[str, Need] = {}
        for named in table("oci_access")["transfers"][self.purpose]:
            for resource_type, permissions, trust in permissions_of(named):
                need = needed.setdefault(resource_type, Need())
                need.permissions |= permissions
                need.trusts.append(trust)
        try:
            group, place = self._group(), place_of(self.compartment)
            only = iam.equals(NARROWING["bucket"], self.bucket)
            grants = (smallest_grant(kind, need) for kind, need in needed.items())
            return tuple(iam.to_text(iam.Statement(group, grant, place, only)) for grant in grants)
        except StatementError:
            return ()  # a name that no statement can hold is no name of a bucket either

    def _group(self) -> iam.Subject:
        if self.stack is None:
            return group_named("group", "YOUR-GROUP")
        access, users = self.stack.access, self.stack.access.users
        dynamic = self.stack.physical("notebooks") if users.notebooks else users.dynamic_group
        if dynamic:
            return group_named("dynamic-group", dynamic, access.domain)
        return group_named("group", users.group or "YOUR-GROUP", access.domain)
