# SPDX-License-Identifier: Apache-2.0
"""Changes that OCI would refuse in the middle of an `up` are reported before it. tests/unit tests every rule."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.tables import table
from tests.programs.conftest import Written
from tests.support.recorder.answers import RESOURCES
from tests.support.recorder.client import ProgramError

EXAMPLE = "oci-pytorch-ddp"
OWN = f"organization/trainyard/{EXAMPLE}"


def test_refused_changes_are_found_from_the_state(changed: Written) -> None:
    def change(cidr: str, **bucket: Any) -> Any:
        return lambda config: config.update(
            {"trainyard:network": {"cidr": cidr}, "trainyard:bucket": {"name": "vision-dt", **bucket}}
        )

    rules = table("oci_refusals")
    made = changed(EXAMPLE, change("10.20.0.0/16")).made()
    state = {OWN: {}, OWN + RESOURCES: {one.urn: dict(one.inputs) for one in made}}
    (said,) = (
        warning
        for warning in changed(EXAMPLE, change("10.30.0.0/16"), references=state).warnings
        if warning.startswith("trainyard:")
    )
    assert said.startswith("trainyard:network.cidr: 10.20.0.0/16 -> 10.30.0.0/16 leaves subnets outside: `")
    assert rules["vcn-range"]["rule"] in said
    assert f"`pulumi up --stack {EXAMPLE} --replace 'urn:pulumi:" in said
    with pytest.raises(ProgramError, match=f"Pulumi.{EXAMPLE}.yaml:\\d+: trainyard:bucket.versioning: OCI can suspend"):
        changed(EXAMPLE, change("10.20.0.0/16", versioning=False), references=state)
