# SPDX-License-Identifier: Apache-2.0
"""The tree of compartments: where a statement reaches."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.oci.iam.statement import CompartmentId, CompartmentName, Location, Tenancy


@dataclass(frozen=True)
class Compartments:
    """A tenancy's compartments. `root` is the tenancy; `parents` and `names` are by OCID and leave the root out."""

    root: str
    parents: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def lineage(self, ocid: str) -> tuple[str, ...]:
        """The compartment and all above it, up to the tenancy. Empty if it is not in this tenancy."""
        line: list[str] = []
        at: str | None = ocid
        while at is not None and at not in line:
            line.append(at)
            if at == self.root:
                return tuple(line)
            at = self.parents.get(at)
        return ()

    def _child(self, parent: str, name: str) -> str | None:
        wanted = name.lower()
        for ocid, above in self.parents.items():
            if above == parent and self.names.get(ocid, "").lower() == wanted:
                return ocid
        return None

    def _below(self, start: str, path: tuple[str, ...]) -> str | None:
        at: str | None = start
        for name in path:
            at = self._child(at, name) if at is not None else None
        return at

    def resolve(self, location: Location, attached: str) -> str | None:
        """The compartment that a location names in a policy attached to `attached`.

        A policy reaches its own compartment and those below. None for any other: OCI refuses such a statement.
        """
        match location:
            case Tenancy():
                return self.root if attached == self.root else None
            case CompartmentId(ocid):
                return ocid if attached in self.lineage(ocid) else None
            case CompartmentName(path):
                below = self._below(attached, path)
                own = self.names.get(attached, "").lower() == path[0].lower()
                return below or (self._below(attached, path[1:]) if own else None)
