# SPDX-License-Identifier: Apache-2.0
"""The inputs that only runs on paper have."""

from __future__ import annotations

from components.platform.inputs import OwnInputs, RunInput

_TEXT = {"type": "string"}
INPUTS = OwnInputs(
    inputs={"desk": RunInput({**_TEXT, "description": "The folder of the runs"}, required=True, connects=True)},
    stands_on="desk",
    access_comes_late=False,
)
