# SPDX-License-Identifier: Apache-2.0
"""The schema the provider hands out says what its code does."""

from provider.plugin import Trainyard
from provider.runs.check import INPUTS, REQUIRED
from provider.runs.model import Timeouts


def test_the_schema_names_the_inputs_of_the_code() -> None:
    schema = Trainyard().schema()
    run = schema["resources"]["trainyard:index:Run"]
    assert set(run["inputProperties"]) == INPUTS
    assert run["requiredInputs"] == list(REQUIRED)
    assert schema["version"] == Trainyard.version
    assert set(schema["types"]["trainyard:index:Timeouts"]["properties"]) == set(vars(Timeouts()))
