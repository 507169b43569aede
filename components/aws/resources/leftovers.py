# SPDX-License-Identifier: Apache-2.0
"""Finds resources in AWS that have this stack's names or tags but are not in its state. A killed `up` left them, or
they belong to another stack.

Pulumi's AWS provider does not know what an interrupted `up` has made. If a name is taken, the next `up` fails half-way.
A machine has no unique name, so the next `up` would make a second one, for which AWS would charge.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pulumi

from components.aws.machines import INSTANCE, Recorded
from components.aws.plan import AwsDl1Plan
from components.aws.resources.context import look_up_in_aws
from components.aws.statements import aws_policies
from components.messages import RefusedError
from components.outputs import unless_refused
from schemas.findings import Wrong, at

_ALIVE = ["pending", "running", "stopping", "stopped"]


class _Name(NamedTuple):
    """A unique name of AWS: the type of its resource with words for it, and the argument that looks it up.

    `called`: its name in Pulumi, and earlier names. `above`: its parent component, by the last word of its type and its
    name. `imported_by`: what is found by which Pulumi imports it.
    """

    token: str
    words: str
    argument: tuple[str, str]
    called: tuple[str, ...]
    above: tuple[str, str]
    imported_by: str = "name"


def find_leftovers(plan: AwsDl1Plan, templates: Mapping[str, str], account: str, recorded: Recorded) -> Iterator[Wrong]:
    """A warning for each taken name whose resource this stack made. Raises RefusedError for machines that are not in
    the state, and for resources of another stack."""
    refused = [*_stray_machines(plan, recorded)]
    warned: list[Wrong] = []
    for name in _unique_names(plan, templates, account):
        package, kind = name.token.split("/")[0].removeprefix("aws:"), name.token.rpartition(":")[2]
        if recorded.urn(kind, *name.called):
            continue
        found = _found_in_aws(package, f"get{kind}", dict([name.argument]))
        tags = found.get("tags") or {}
        if tags.get("managed-by") == "trainyard":
            if tags.get("stack") == plan.stack:
                message = (
                    f"the {name.words} is there, but this stack's state does not have it: an `up` that was killed left "
                    "it. If AWS refuses to make another one, it can be taken in"
                )
                there = str(found[name.imported_by])
                remedy = _import_command(recorded, name.token, name.called[0], there, name.above)
                warned.append(Wrong(at("environment"), message, remedy or "delete it"))
            else:
                message = f"the {name.words} is of the stack `{tags.get('stack')}`, and the name must be unique"
                remedy = "choose another team or environment, or take down the other stack first"
                refused.append(Wrong(at("environment"), message, remedy))
    if refused:
        raise RefusedError(refused)
    yield from warned


def _found_in_aws(package: str, function: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """What AWS has. Empty if the lookup fails: that must not stop `up`."""
    return dict(unless_refused(lambda: look_up_in_aws(package, function, **arguments).items()))


def _unique_names(plan: AwsDl1Plan, templates: Mapping[str, str], account: str) -> Iterator[_Name]:
    if plan.access.create:
        access, role = ("Access", "access"), plan.access.runs_role
        if plan.access.make_runs_role:
            yield _Name("aws:iam/role:Role", f"role `{role}`", ("name", role), ("nodes",), access)
        for policy in (one for one in aws_policies(plan) if one.document is not None):
            words, arn = f"policy `{policy.name}`", f"arn:aws:iam::{account}:policy/{policy.name}"
            yield _Name("aws:iam/policy:Policy", words, ("arn", arn), (policy.name,), access, "arn")
    if plan.logs.enabled and plan.logs.create:
        words, named = f"log group `{plan.logs.group_name}`", ("name", plan.logs.group_name)
        yield _Name("aws:cloudwatch/logGroup:LogGroup", words, named, ("log-group",), ("Storage", "storage"))
    for job, template in templates.items():
        words, called = f"launch template `{template}`", (job, *plan.jobs[job].was)
        named, above = ("name", template), ("Cluster", job)
        yield _Name("aws:ec2/launchTemplate:LaunchTemplate", words, named, called, above, "id")


def _stray_machines(plan: AwsDl1Plan, recorded: Recorded) -> Iterator[Wrong]:
    """Machines with this stack's tags that its state does not have."""
    tags = {"managed-by": "trainyard", "stack": plan.stack, "team": plan.team, "environment": plan.environment}
    if not plan.jobs or not (unknown := _find_instances_by_tags(tags) - recorded.instances):
        return
    for name, job in plan.jobs.items():
        has = recorded.machines(job)
        for node in job.cluster.nodes:
            for machine in sorted(unknown & _find_instances_by_tags({**tags, "job": job.cluster.key, "node": node})):
                unknown -= {machine}
                words = f"the machine {machine} is tagged as `{node}` of the job `{name}`"
                how = _import_command(recorded, INSTANCE, f"{name}/{node}", machine, ("Cluster", name))
                yield _stray_machine(words, plan, machine, None if node in has else how)
    for machine in sorted(unknown):
        yield _stray_machine(f"the machine {machine} is tagged as one of this stack", plan, machine, None)


def _stray_machine(words: str, plan: AwsDl1Plan, machine: str, how: str | None) -> Wrong:
    message = f"{words}, but the stack's state does not have it: an `up` that was killed left it, and it costs money"
    end = f"`aws ec2 terminate-instances --region {plan.region} --instance-ids {machine}`"
    return Wrong(at("jobs"), message, f"{how}. Or end it: {end}" if how else f"end it: {end}")


def _find_instances_by_tags(tags: Mapping[str, str]) -> frozenset[str]:
    """The machines with this stack's tags."""
    wanted = {"instanceTags": dict(tags), "instanceStateNames": _ALIVE}
    return frozenset(_found_in_aws("ec2", "getInstances", wanted).get("ids") or ())


def _import_command(recorded: Recorded, token: str, called: str, there: str, above: tuple[str, str]) -> str | None:
    """The command that imports it into the state. None if the state does not have its parent yet."""
    parent = recorded.urn(*above)
    if parent is None:
        return None
    stack = pulumi.get_stack()
    words = ["pulumi", "import", "--stack", stack, token, called, there, "--parent", f"parent={parent}"]
    # The order of deletions is in the state only after an `up`.
    return f"take it in: `{shlex.join(words)}`, and bring the stack up before you change anything else"
