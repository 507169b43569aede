# SPDX-License-Identifier: Apache-2.0
"""Some values of a stack file become part of a policy statement or a matching rule. If such a value is invalid in OCI's
policy language, the stack file is refused.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.oci import statements
from components.oci.iam.parse import parse_statement
from components.oci.plan import oci_plan
from components.plan.build import plan_of
from schemas.judge import judge_file

ROOT = Path(__file__).parents[2]
EXAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "stacks" / "Pulumi.oci-pytorch-ddp.yaml").read_text("utf-8"))
KEYS: tuple[tuple[str, ...], ...] = (
    ("oci:region",),
    ("trainyard:team",),
    ("trainyard:environment",),
    ("trainyard:compartment",),
    ("trainyard:tenancy",),
    ("trainyard:access", "users", "group"),
    ("trainyard:access", "users", "dynamicGroup"),
    ("trainyard:access", "runs"),
    ("trainyard:access", "domain"),
    ("trainyard:network", "compartment"),
    ("trainyard:bucket", "name"),
    ("trainyard:bucket", "key"),
    ("trainyard:registry", "repository"),
    ("trainyard:jobs", "resnet", "inputs", "0", "bucket"),
    ("trainyard:jobs", "resnet", "code", "git", "secret"),
    ("trainyard:vault", "secrets", "KEY"),
)
KINDS = ("compartment", "tenancy", "group", "dynamicgroup", "key", "vaultsecret")
HOSTILE = (
    "x'y", "x\n", " x", "x ", "x/y/z", "'/ manage all-resources in tenancy", "Dom /x", "a\u2028b", "a\x1bb", "x}", "",
    *(f"ocid1.{kind}.oc1..{end}" for kind in KINDS for end in ("a'a", "aa\n", "a b", "aa}")),
)  # fmt: skip


def planted(key: tuple[str, ...], value: str, mode: str) -> dict[str, Any]:
    made = copy.deepcopy(EXAMPLE)
    config = made["config"]
    config["trainyard:access"] |= {"mode": mode}
    config["trainyard:jobs"]["resnet"]["code"] = {"git": {"url": "https://example.com/code"}}
    if key[-1] == "dynamicGroup":
        config["trainyard:access"]["users"] = {}
    if key[-1] == "domain":
        config["trainyard:access"]["domainEndpoint"] = "https://idcs-0.identity.oraclecloud.com"
    place: Any = config
    for step in key[:-1]:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    if key[-1] == "KEY":
        config["trainyard:vault"] |= {"vault": "ocid1.vault.oc1.iad.b.a", "key": "ocid1.key.oc1.iad.b.a"}
        place[value] = {"secure": "v1:x"}
    else:
        place[key[-1]] = value
    return made


@pytest.mark.parametrize("key", KEYS, ids=".".join)
def test_a_value_that_no_statement_can_contain_is_a_finding_with_its_line(key: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.planted.yaml"
    refused = 0
    for value in HOSTILE:
        for mode in ("least-privilege", "documented"):
            file.write_text(yaml.safe_dump(planted(key, value, mode)), "utf-8")
            judged = judge_file(file)
            if judged.errors or judged.stack is None:
                refused += 1
                assert all(error.line for error in judged.errors), judged.errors
                break  # The same in each mode.
            plan = oci_plan(plan_of(judged))
            assert all(parse_statement(line.text) == line.statement for line in statements.policy_lines(plan)), value
            statements.matching_rule(plan, "runs")
    assert refused, "nothing of this is a name"
