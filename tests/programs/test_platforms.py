# SPDX-License-Identifier: Apache-2.0
"""A platform that is only planned for so far makes nothing, and says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs.conftest import Written
from tests.support.recorder.client import ProgramError

_OF_OCI = ("oci:region", "trainyard:compartment", "trainyard:tenancy", "trainyard:frameworks")


def _on_dl1(config: dict[str, Any]) -> None:
    for key in _OF_OCI:
        config.pop(key, None)
    config |= {"aws:region": "us-east-1", "trainyard:platform": "aws-dl1"}
    config["trainyard:access"] = {"users": {"group": "vision-scientists"}}
    for job in config["trainyard:jobs"].values():
        job["shape"] = "dl1.24xlarge"


def test_a_stack_on_a_platform_that_is_not_deployed_to_makes_nothing(changed: Written) -> None:
    with pytest.raises(ProgramError) as refused:
        changed("oci-pytorch-ddp", _on_dl1)
    assert "This release of trainyard does not deploy to aws-dl1 yet. Nothing was changed." in str(refused.value)
