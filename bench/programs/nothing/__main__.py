# SPDX-License-Identifier: Apache-2.0
"""A provider on our own base that answers every call at once. The engine runs `python <this folder> <engine>`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provider.base.resource import Plugin


def plugin() -> Plugin:
    from components.platform.calls import Call
    from components.platform.values import Properties
    from provider.base.resource import CreatedResource, LiveResource, Plugin, ProviderResource

    class Thing(ProviderResource):
        def create(self, call: Call, inputs: Properties) -> CreatedResource:
            return CreatedResource(call.name, inputs)

        def read(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> LiveResource:  # noqa: A002
            return LiveResource(id, outputs, inputs)

        def update(self, call: Call, id: str, outputs: Properties, old: Properties, new: Properties) -> Properties:  # noqa: A002
            return new

        def delete(self, call: Call, id: str, outputs: Properties, inputs: Properties) -> None:  # noqa: A002
            pass

    class Nothing(Plugin):
        name, version = "nothing", "1.0.0"

        def configure(self, config: Properties) -> None:
            pass

        def resource(self, token: str) -> ProviderResource:
            return Thing()

    return Nothing()


if __name__ == "__main__":
    # Python, started with a folder, would look for modules in that folder.
    sys.path[0] = str(Path(__file__).resolve().parents[3])
    from provider.base.serve import main

    main(plugin(), sys.argv[1:])
