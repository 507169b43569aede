# SPDX-License-Identifier: Apache-2.0
"""Properties of every plan, tested with random stacks."""

import json

from hypothesis import given
from hypothesis import strategies as st

from catalog import frameworks
from components.oci import statements
from components.oci.deployer import deployer_lines
from components.oci.iam.parse import parse_statement
from components.oci.stack import OciAccess, OciJob, OciNetwork, OciStack, Users
from components.plan.model import SERVICES, SUBNET
from components.plan.show import plan_text, to_plain_values
from schemas.model import Role, Run, Shape
from tests.support.oci_plans import oci_plan

ROWS = [
    frameworks.framework_row(name, strategy)
    for name in frameworks.framework_names()
    for strategy in (frameworks.framework_row(name).strategies or (None,))
]


@st.composite
def jobs(draw: st.DrawFn) -> OciJob:
    """A job of any framework and strategy, with as many nodes as its row allows."""
    row = draw(st.sampled_from(ROWS))
    roles = {
        name: Role(draw(st.integers(role.minimum, role.maximum if role.maximum is not None else 5)))
        for name, role in row.roles.items()
    }
    switches = [name for name, option in row.options.items() if option.type == "boolean"]
    options = draw(st.dictionaries(st.sampled_from(switches), st.booleans())) if switches else {}
    return OciJob(
        framework=row.name,
        strategy=row.strategy,
        image="${registry}:1",
        shape=Shape("VM.GPU.A10.1"),
        roles=roles,
        command="train.py",
        layout=draw(st.sampled_from(["run-per-node", "node-groups"])),
        options=options,
        runs={name: Run() for name in draw(st.sets(st.sampled_from(["base", "tuned", "last"])))},
    )


stacks = st.builds(
    OciStack,
    name=st.just("some"),
    team=st.just("vision"),
    environment=st.just("dev"),
    region=st.just("us-ashburn-1"),
    compartment=st.just("ocid1.compartment.oc1..c"),
    tenancy=st.just("ocid1.tenancy.oc1..t"),
    access=st.builds(
        OciAccess,
        mode=st.sampled_from(["least-privilege", "documented", "proof-of-concept"]),
        users=st.just(Users(group="scientists")),
    ),
    network=st.builds(OciNetwork, mode=st.sampled_from(["least", "documented", "proof-of-concept"]), nat=st.booleans()),
    jobs=st.dictionaries(st.sampled_from(["a", "b", "c"]), jobs()),
)


@given(stacks)
def test_no_two_plans_of_one_stack_differ(stack: OciStack) -> None:
    first, second = oci_plan(stack), oci_plan(stack)
    assert first == second
    assert plan_text(first) == plan_text(second)
    assert json.dumps(to_plain_values(first)) == json.dumps(to_plain_values(second))


@given(stacks)
def test_every_node_has_a_rank_and_its_own_document(stack: OciStack) -> None:
    for name, job in oci_plan(stack).jobs.items():
        for run in job.runs.values():
            assert sum(node.replicas for node in run.nodes) == stack.jobs[name].nodes
            assert len({node.name for node in run.nodes}) == len(run.nodes)
            if job.layout == "run-per-node":
                assert [node.launch["rank"] for node in run.nodes] == list(range(len(run.nodes)))
            else:
                assert {node.launch["rank"] for node in run.nodes} == {None}


@given(stacks)
def test_least_opens_no_port_that_no_job_listens_on(stack: OciStack) -> None:
    plan = oci_plan(stack)
    if plan.network.mode != "least":
        return
    listening = {
        (f"{job.name}/{role.name}", ports)
        for job in plan.jobs.values()
        for role in job.roles
        for ports in role.ports.values()
    }
    for rule in plan.network.rules:
        if rule.source != SUBNET:
            assert (rule.target, rule.ports) in listening
        else:
            assert rule.target == SERVICES or (rule.target == "internet" and stack.network.nat)


@given(stacks)
def test_what_a_node_is_told_by_environment_has_nothing_left_to_fill_in(stack: OciStack) -> None:
    """Braces are for the launcher, and only in its document: OCI hands variables over as they are."""
    for job in oci_plan(stack).jobs.values():
        for run in job.runs.values():
            for node in run.nodes:
                assert not [name for name, value in node.environment.items() if "{" in str(value).replace("${", "")]


@given(stacks, st.sampled_from(["scientists", "Eng/All users", "ocid1.group.oc1..a"]))
def test_every_statement_reads_back_and_the_deployer_may_make_what_is_made(stack: OciStack, group: str) -> None:
    plan = oci_plan(stack)
    for line in (*statements.policy_lines(plan), *deployer_lines(plan, group)):
        assert parse_statement(line.text) == line.statement
