# SPDX-License-Identifier: Apache-2.0
"""The resource types of our own provider, which every platform has."""

from catalog.platforms import OWN_PROVIDER, platforms
from components.values.resource_types import EVERY_INPUT, LostWith, ResourceType, by_token, inputs_in_reviews

# Where a provider acts. Its credentials and endpoints are not here, and so are named.
_PLACE_OF_PROVIDER = "auth configFileProfile profile region"

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
            in_reviews=inputs_in_reviews(planned=EVERY_INPUT),
        ),
        ResourceType(
            token="trainyard:index:KeyPair",
            lost=LostWith(
                "the nodes of {name} get another key: those that still have the old one cannot enter the others",
                "change it while no run is going",
            ),
            in_reviews=inputs_in_reviews(planned="rotation"),
        ),
    ],
    (
        ResourceType(
            token=f"pulumi:providers:{provider}",
            in_reviews=inputs_in_reviews(placed=_PLACE_OF_PROVIDER, plain={"of the plugin": "version"}),
        )
        for provider in (OWN_PROVIDER, *(row.provider for row in platforms().values() if row.provider))
    ),
)
