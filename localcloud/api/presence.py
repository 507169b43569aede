# SPDX-License-Identifier: Apache-2.0
"""Whether somebody is still there: a token outlives the user or the run that it was made for."""

from __future__ import annotations

from dataclasses import replace

from localcloud.api.principals import Principal
from localcloud.api.store import StateStore


def current_principal(store: StateStore, principal: Principal) -> Principal | None:
    """The principal as it is now, also where it was moved to another compartment; None for one that was deleted."""
    resource = store.get(principal.id)
    if resource is None or not resource.live:
        return None
    return replace(principal, compartment=resource.compartment) if principal.resource_kind else principal
