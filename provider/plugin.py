# SPDX-License-Identifier: Apache-2.0
"""The Pulumi provider `trainyard`. It has the resources that no other provider has."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from catalog.version import VERSION
from components.platform.calls import ProviderError
from components.platform.inputs import able_platforms, own_inputs
from components.platform.values import Properties
from provider.base.resource import Plugin, ProviderResource
from provider.keys.resource import KeyPairResource
from provider.runs.platform import RunPlatforms
from provider.runs.resource import RunResource

_CONFIGURATION = ("region", "profile", "configFile")


class Trainyard(Plugin):
    name = "trainyard"
    version = VERSION

    def __init__(self) -> None:
        self._configured: RunPlatforms | None = None
        self._resources: Mapping[str, ProviderResource] = {
            "trainyard:index:KeyPair": KeyPairResource(),
            "trainyard:index:Run": RunResource(self._platforms),
        }

    def configure(self, config: Properties) -> None:
        self._configured = RunPlatforms({key: config[key] for key in _CONFIGURATION if config.get(key)})

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        # Another profile or file may lead to the same account, but another region never has the same runs.
        return [key for key in ("region",) if old.get(key) and new.get(key) and old[key] != new[key]]

    def resource(self, token: str) -> ProviderResource | None:
        return self._resources.get(token)

    def schema(self) -> Mapping[str, Any]:
        described: dict[str, Any] = json.loads((Path(__file__).parent / "schema.json").read_text(encoding="utf-8"))
        run = described["resources"]["trainyard:index:Run"]["inputProperties"]
        node = described["types"]["trainyard:index:Node"]["properties"]
        for own in filter(None, map(own_inputs, able_platforms())):
            run |= {name: row.shape for name, row in own.inputs.items()}
            node |= own.node
        return {**described, "version": self.version}

    def _platforms(self) -> RunPlatforms:
        if self._configured is None:
            raise ProviderError(
                "The provider `trainyard` was not configured.", "This is a bug of the engine or the host."
            )
        return self._configured
