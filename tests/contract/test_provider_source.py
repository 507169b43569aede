# SPDX-License-Identifier: Apache-2.0
"""Compares the table of the provider's calls with the provider's own source, if a checkout of it is available."""

import os
from pathlib import Path

from tests.support.provider_source import VARIABLE, ProviderSource

PLACE = os.environ.get(VARIABLE, "")

if PLACE:

    def test_every_call_in_the_source_is_in_the_table() -> None:
        assert list(ProviderSource(Path(PLACE)).missing()) == []
