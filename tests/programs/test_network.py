# SPDX-License-Identifier: Apache-2.0
"""The network as whole programs ask for it."""

from __future__ import annotations

from typing import Any

from tests.programs.conftest import Written

Config = dict[str, Any]


def test_rules_beyond_the_limit_go_into_another_list_of_the_same_subnet(changed: Written) -> None:
    def many(config: Config) -> None:
        jobs = config["trainyard:jobs"]
        for number in range(210):
            ports = {"rendezvous": 20_000 + 2 * number}
            jobs[f"job-{number}"] = {**jobs["resnet"], "ports": ports, "runs": {}}

    recording = changed("oci-pytorch-ddp", many)
    found = recording.of("SecurityList")
    assert set(found) == {"rules", "rules-2"}
    # OCI's own default limit.
    assert (
        len(found["rules"].inputs["ingressSecurityRules"]) == len(found["rules"].inputs["egressSecurityRules"]) == 200
    )
    assert found["rules-2"].inputs["ingressSecurityRules"]
    [subnet] = recording.of("Subnet").values()
    assert len(subnet.inputs["securityListIds"]) == 2
