# SPDX-License-Identifier: Apache-2.0
"""The platforms of runs, each made from the provider's configuration and the inputs that connect."""

from components.platform.base import platform
from components.platform.calls import ProviderError
from components.platform.client import Runs
from components.platform.inputs import able_platforms, own_inputs
from components.platform.values import Properties, canonical


class RunPlatforms:
    """The platforms of one configured provider, made when first needed."""

    def __init__(self, config: Properties) -> None:
        self._config = config
        self._made: dict[tuple[str, str], Runs] = {}

    def of(self, inputs: Properties, run_id: str = "") -> Runs:
        """The platform of a run. An imported run has only its id."""
        name = inputs.get("platform") or _platform_that_knows(run_id)
        own = own_inputs(name)
        connects = {key: inputs[key] for key in own.connecting if inputs.get(key)} if own else {}
        key = (name, canonical(connects))
        if key not in self._made:
            self._made.setdefault(key, platform(name).runs({**self._config, **connects}))
        return self._made[key]


def _platform_that_knows(run_id: str) -> str:
    for name in able_platforms():
        if platform(name).knows(run_id):
            return name
    raise ProviderError(f"`{run_id}` is not the id of a run on any platform.", "Give the id of the main node's run.")
