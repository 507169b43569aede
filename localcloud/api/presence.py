# SPDX-License-Identifier: Apache-2.0
"""Whether a principal still exists: a token may outlive the user or run that it was issued for."""

from __future__ import annotations

from dataclasses import replace

from localcloud.api.principals import Caller
from localcloud.api.store import StateStore


def current_principal(store: StateStore, principal: Caller) -> Caller | None:
    """The principal as it is now, in its current compartment; None if it was deleted."""
    resource = store.get(principal.id)
    if resource is None or not resource.live:
        return None
    return replace(principal, compartment=resource.compartment) if principal.resource_kind else principal
