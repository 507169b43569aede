# SPDX-License-Identifier: Apache-2.0
"""The resource types of our own provider, which every platform has."""

from components.values.resource_types import LostWith, ResourceType, by_token

RESOURCE_TYPES = by_token(
    [
        ResourceType(
            token="trainyard:index:Run",
            part="run",
            tags="tags",
            lost=LostWith(
                "the run {name} ends if it is still going; it starts again from the beginning, or from its last "
                "checkpoint in "
                "the bucket",
                "let it end first. Renamed, it goes on with `was:`; to start it again on purpose, raise its `attempt`",
                ("displayName",),
            ),
        ),
        ResourceType(
            token="trainyard:index:KeyPair",
            lost=LostWith(
                "the nodes of {name} get another key: those that still have the old one cannot enter the others",
                "change it while no run is going",
            ),
        ),
    ]
)
