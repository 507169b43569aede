# SPDX-License-Identifier: Apache-2.0
"""The example stacks, their plans and the smallest stack file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from components.oci.plan import OciPlan
from components.oci.stack import OciStack
from schemas.facts import gather_facts
from schemas.load import load_file
from schemas.model import Stack
from tests.support.oci_plans import oci_plan

STACKS = Path(__file__).parents[2] / "stacks"
# The stack from which `oci-team` takes what it shares, as Pulumi names it.
PLATFORM = "organization/trainyard/oci-platform"
ALL_EXAMPLES = tuple(sorted(file.stem.removeprefix("Pulumi.") for file in STACKS.glob("Pulumi.*.yaml")))
AWS_EXAMPLES = tuple(name for name in ALL_EXAMPLES if name.startswith("aws-"))
OPENPAI_EXAMPLES = tuple(name for name in ALL_EXAMPLES if name.startswith("openpai-"))
# Those of OCI.
EXAMPLES = tuple(name for name in ALL_EXAMPLES if name not in (*AWS_EXAMPLES, *OPENPAI_EXAMPLES))

# The smallest valid stack file. Tests add lines to it.
SMALLEST = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaavision
  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaacompany
  trainyard:access: { users: { group: vision-scientists } }
"""


def stack_file(name: str) -> Path:
    return STACKS / f"Pulumi.{name}.yaml"


@cache
def any_stack(name: str) -> Stack:
    """The example with this name, of any platform."""
    loaded = load_file(stack_file(name))
    if loaded.stack is None:
        raise ValueError(f"{name}: {loaded.findings}")
    return loaded.stack


def stack(name: str) -> OciStack:
    example = any_stack(name)
    assert isinstance(example, OciStack)
    return example


@cache
def plan(name: str) -> OciPlan:
    facts = gather_facts(stack(name), STACKS)
    return oci_plan(stack(name), {key: own.columns for key, own in facts.own_frameworks.items()})
