# SPDX-License-Identifier: Apache-2.0
"""The deployer's policy of each example grants every call that the real provider makes for the example's resources."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from components.aws.access_report import deployer_policies
from components.aws.plan import aws_dl1_plan
from components.aws.types import SERVED_TYPES as AWS_TYPES
from components.aws.types.deployer_actions import actions_of_function, actions_of_type
from components.aws.types.functions import FUNCTIONS as AWS_FUNCTIONS
from components.aws.types.provider_calls import PHASES, aws_type_calls
from components.oci import iam
from components.oci.deployer import STEPS, calls_of_type, deployer_lines
from components.oci.plan import OciPlan
from components.oci.statements import permissions_of
from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS
from components.plan.build import plan_of
from schemas.judge import judge_file
from tests.programs.conftest import Record
from tests.support.examples import AWS_EXAMPLES, EXAMPLES, PLATFORM, plan, stack_file
from tests.support.recorder.client import Recording


def calls(recording: Recording) -> Iterator[tuple[str, str, str]]:
    """Each resource, its calls, and its compartment if the inputs have one."""
    for made in recording.made():
        if made.type in SERVED_TYPES:
            stays = made.retain or made.protect
            for call in calls_of_type(made.type, STEPS[:-1] if stays else STEPS):
                yield made.name, call, str(made.inputs.get("compartmentId", ""))
    for asked in recording.invokes:
        function = FUNCTIONS.get(asked["function"])
        for call in function.calls if function else ():
            yield asked["function"], call, str(asked["arguments"].get("compartmentId", ""))


def granted(of: OciPlan, place: str) -> frozenset[str]:
    """What the deployer may do in this compartment. None: in any of the stack's compartments."""
    places = (iam.Tenancy(), *([iam.CompartmentId(place)] if place else ()))
    lines = [line.statement for line in deployer_lines(of, "deployers")]
    return frozenset().union(
        *(iam.permissions_of_grant(line.grant) for line in lines if not place or line.location in places)
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_oci_examples_deployer_may_make_every_call_of_the_provider(name: str, record: Record) -> None:
    references = {PLATFORM: record("oci-platform").exports} if name == "oci-team" else {}
    refused = {
        (who, call, place)
        for who, call, place in calls(record(name, references=references))
        for _, needed, _ in permissions_of(call)
        if not needed <= granted(plan(name), place)
    }
    assert not refused


def aws_actions(recording: Recording) -> Iterator[tuple[str, str]]:
    """Each resource, and the actions that it needs. Kept resources are not deleted."""
    for made in recording.made():
        if made.type in AWS_TYPES:
            given = " ".join(aws_type_calls(made.type).with_input.keys() & made.inputs.keys())
            for action in actions_of_type(made.type, given, PHASES[:-1] if made.retain or made.protect else PHASES):
                yield made.name, action
    for asked in recording.invokes:
        if asked["function"] in AWS_FUNCTIONS:
            for action in actions_of_function(asked["function"]):
                yield asked["function"], action


@pytest.mark.parametrize("name", AWS_EXAMPLES)
def test_an_aws_examples_deployer_may_make_every_call_of_the_provider(name: str, record: Record) -> None:
    made = aws_dl1_plan(plan_of(judge_file(stack_file(name))))
    may = {action for policy in deployer_policies(made) for one in policy.statements for action in one.actions}
    needed = {(who, action) for who, action in aws_actions(record(name)) if action != "sts:GetCallerIdentity"}
    assert {"ec2:RunInstances", "ec2:DescribeImages"} <= {action for _, action in needed}
    assert not {one for one in needed if not any(fnmatchcase(one[1], pattern) for pattern in may)}
