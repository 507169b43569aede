# SPDX-License-Identifier: Apache-2.0
"""Finds resources in AWS that have this stack's names or tags but are not in its state. A killed `up` left them, or
they belong to another stack.

Pulumi's AWS provider does not know what an interrupted `up` has made. If a name is taken, the next `up` fails half-way.
A machine has no unique name, so the next `up` would make a second one, for which AWS would charge.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.aws.machines import INSTANCE, Recorded
from components.aws.plan import AwsDl1Plan
from components.aws.resources.context import look_up_in_aws
from components.aws.statements import aws_policies
from components.messages import RefusedError
from schemas.findings import Wrong, at

_ALIVE = ["pending", "running", "stopping", "stopped"]


@dataclass(frozen=True, slots=True)
class _Name:
    """A unique name of AWS: the resource, how it is looked up, and how Pulumi imports it.

    `called`: its name in Pulumi, and earlier names. `above`: its parent component, by the last word of its type and its
    name.
    """

    words: str
    package: str
    function: str
    argument: tuple[str, str]
    token: str
    called: tuple[str, ...]
    above: tuple[str, str]
    id: Callable[[Mapping[str, Any]], str]


def find_leftovers(plan: AwsDl1Plan, templates: Mapping[str, str], account: str, recorded: Recorded) -> Iterator[Wrong]:
    """A warning for each taken name whose resource this stack made. Raises RefusedError for machines that are not in
    the state, and for resources of another stack."""
    refused = [*_stray_machines(plan, recorded)]
    warned: list[Wrong] = []
    for name in _unique_names(plan, templates, account):
        if recorded.urn(name.token.rpartition(":")[2], *name.called):
            continue
        try:
            found = look_up_in_aws(name.package, name.function, **dict([name.argument]))
        except Exception:  # Pulumi raises nothing more precise for what a provider answers
            found = {}
        tags = found.get("tags") or {}
        if tags.get("managed-by") == "trainyard":
            if tags.get("stack") == plan.stack:
                message = (
                    f"the {name.words} is there, but this stack's state does not have it: an `up` that was killed left "
                    "it. If AWS refuses to make another one, it can be taken in"
                )
                remedy = _import_command(plan, recorded, name.token, name.called[0], name.id(found), name.above)
                warned.append(Wrong(at("environment"), message, remedy or "delete it"))
            else:
                message = f"the {name.words} is of the stack `{tags.get('stack')}`, and the name must be unique"
                remedy = "choose another team or environment, or take down the other stack first"
                refused.append(Wrong(at("environment"), message, remedy))
    if refused:
        raise RefusedError(refused)
    yield from warned


def _unique_names(plan: AwsDl1Plan, templates: Mapping[str, str], account: str) -> Iterator[_Name]:
    if plan.access.create:
        access, by_arn = ("Access", "access"), lambda found: str(found["arn"])
        if plan.access.make_runs_role:
            role = plan.access.runs_role
            yield _Name(
                f"role `{role}`",
                "iam",
                "getRole",
                ("name", role),
                "aws:iam/role:Role",
                ("nodes",),
                access,
                _name_of_found,
            )
        for policy in aws_policies(plan):
            arn = ("arn", f"arn:aws:iam::{account}:policy/{policy.name}")
            if policy.document is not None:
                words = f"policy `{policy.name}`"
                yield _Name(words, "iam", "getPolicy", arn, "aws:iam/policy:Policy", (policy.name,), access, by_arn)
    if plan.logs.enabled and plan.logs.create:
        words, named = f"log group `{plan.logs.group_name}`", ("name", plan.logs.group_name)
        token = "aws:cloudwatch/logGroup:LogGroup"
        yield _Name(
            words, "cloudwatch", "getLogGroup", named, token, ("log-group",), ("Storage", "storage"), _name_of_found
        )
    for job, template in templates.items():
        words, token = f"launch template `{template}`", "aws:ec2/launchTemplate:LaunchTemplate"
        yield _Name(
            words,
            "ec2",
            "getLaunchTemplate",
            ("name", template),
            token,
            (job, *plan.jobs[job].was),
            ("Cluster", job),
            lambda found: str(found["id"]),
        )


def _name_of_found(found: Mapping[str, Any]) -> str:
    return str(found["name"])


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
                how = (
                    None
                    if node in has
                    else _import_command(plan, recorded, INSTANCE, f"{name}/{node}", machine, ("Cluster", name))
                )
                yield _stray_machine(
                    f"the machine {machine} is tagged as `{node}` of the job `{name}`", plan, machine, how
                )
    for machine in sorted(unknown):
        yield _stray_machine(f"the machine {machine} is tagged as one of this stack", plan, machine, None)


def _stray_machine(words: str, plan: AwsDl1Plan, machine: str, how: str | None) -> Wrong:
    message = f"{words}, but the stack's state does not have it: an `up` that was killed left it, and it costs money"
    end = f"`aws ec2 terminate-instances --region {plan.region} --instance-ids {machine}`"
    return Wrong(at("jobs"), message, f"{how}. Or end it: {end}" if how else f"end it: {end}")


def _find_instances_by_tags(tags: Mapping[str, str]) -> frozenset[str]:
    """The machines with this stack's tags. Empty if the lookup fails: that must not stop `up`."""
    try:
        found = look_up_in_aws("ec2", "getInstances", instanceTags=dict(tags), instanceStateNames=_ALIVE)
    except Exception:  # Pulumi raises nothing more precise for what a provider answers
        return frozenset()
    return frozenset(found.get("ids") or ())


def _import_command(
    plan: AwsDl1Plan, recorded: Recorded, token: str, called: str, there: str, above: tuple[str, str]
) -> str | None:
    """The command that imports it into the state. None if the state does not have its parent yet."""
    parent = recorded.urn(*above)
    if parent is None:
        return None
    stack = pulumi.get_stack()
    words = ["pulumi", "import", "--stack", stack, token, called, there, "--parent", f"parent={parent}"]
    # The order of deletions is in the state only after an `up`.
    return f"take it in: `{shlex.join(words)}`, and bring the stack up before you change anything else"
