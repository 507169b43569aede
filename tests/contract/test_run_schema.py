# SPDX-License-Identifier: Apache-2.0
"""The provider's schema agrees with its code."""

from components.platform.inputs import NEUTRAL, NODE_KEYS, REQUIRED, able_platforms, own_inputs
from components.platform.runs import Timeouts
from provider.plugin import Trainyard


def test_the_schema_names_the_inputs_of_the_code() -> None:
    schema = Trainyard().schema()
    run = schema["resources"]["trainyard:index:Run"]
    owns = [own for own in map(own_inputs, able_platforms()) if own]
    assert set(run["inputProperties"]) == NEUTRAL.union(*(own.inputs for own in owns))
    node = schema["types"]["trainyard:index:Node"]["properties"]
    assert set(node) == NODE_KEYS.union(*(own.node for own in owns))
    assert run["requiredInputs"] == list(REQUIRED)
    assert schema["version"] == Trainyard.version
    assert set(schema["types"]["trainyard:index:Timeouts"]["properties"]) == set(vars(Timeouts()))
