# SPDX-License-Identifier: Apache-2.0
"""Compares the table of the provider's calls with the provider's own source, if a checkout of it is available."""

import os
from pathlib import Path

from tests.support.provider_source import VARIABLE, ProviderSource, named_by_rows

PLACE = os.environ.get(VARIABLE, "")


def test_a_launch_template_is_read_as_it_is_made() -> None:
    """Both sources reach the credits of burstable machines, so both rows say why nothing of ours does."""
    named = {token: calls for token, _, calls in named_by_rows()}
    for token in ("aws:ec2/launchTemplate:LaunchTemplate", "aws:ec2/getLaunchTemplate:getLaunchTemplate"):
        assert "DescribeInstanceTypes" in named[token], token


if PLACE:

    def test_every_call_in_the_source_is_in_the_table() -> None:
        assert list(ProviderSource(Path(PLACE)).missing()) == []
