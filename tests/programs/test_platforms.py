# SPDX-License-Identifier: Apache-2.0
"""A platform that is only planned for so far makes nothing, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs.conftest import Written
from tests.support.recorder.client import ProgramError

_OF_OCI = ("oci:region", "trainyard:compartment", "trainyard:tenancy", "trainyard:frameworks")


def _on_openpai(config: dict[str, Any]) -> None:
    for key in (*_OF_OCI, "trainyard:network"):
        config.pop(key, None)
    config |= {"trainyard:platform": "openpai", "trainyard:access": {"existing": True}}
    for job in config["trainyard:jobs"].values():
        job |= {"shape": "gpu2", "image": "openpai/standard:1.0"}


def test_a_stack_on_a_platform_that_is_not_deployed_to_makes_nothing(changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed("oci-pytorch-ddp", _on_openpai)
    assert "This release of trainyard does not deploy to openpai yet. Nothing was changed." in str(refused.value)
