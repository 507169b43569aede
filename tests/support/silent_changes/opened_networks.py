# SPDX-License-Identifier: Apache-2.0
"""Ways in and out that a stack file opens."""

from __future__ import annotations

from tests.support.silence import SilentChange

CHANGES = (
    SilentChange(
        number=9,
        title="a way out to the internet",
        change=lambda document: document["config"]["trainyard:network"].update(nat=True),
        shows=("opens: the subnet: to 0.0.0.0/0 through a NAT gateway (outside of the stack)",),
        trips=frozenset({"exposure"}),
    ),
)
