# SPDX-License-Identifier: Apache-2.0
"""A machine takes from its template what it does not say itself: disks, role, addresses, and commands that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from components.values.resource_types import types_of_part
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    fail_because,
    unknown_because,
    verdicts_on_each,
)

MACHINES, TEMPLATES = types_of_part("machine"), types_of_part("template")
MACHINE, TEMPLATE = "aws:ec2/instance:Instance", "aws:ec2/launchTemplate:LaunchTemplate"


def judge_templates(stack: JudgedStack) -> Iterator[StackVerdict]:
    templates, machines = stack.of_types(TEMPLATES), stack.of_types(MACHINES)
    # An id does not say whose template it is. There are no more of the stack's own than it has templates.
    ids: dict[str, None] = {}
    for machine in machines:
        launched = machine.properties.get("launchTemplate")
        if not isinstance(launched, Unknown) and launched is not None and isinstance(launched.get("id"), str):
            ids.setdefault(launched["id"])
    foreign = [*ids][len(templates) :]
    yield from verdicts_on_each(lambda machine: judge_template_of(machine, templates, foreign), machines)


def judge_template_of(
    machine: JudgedResource, templates: tuple[JudgedResource, ...], foreign: list[str]
) -> PolicyVerdict:
    launched = machine.properties.get("launchTemplate")
    if launched is None:
        return PASS
    named = launched.get("name")
    if named is not None:
        own = str(named) in [str(template.properties.get("name")) for template in templates]
        return PASS if own else fail_because(f"its launch template {named} is not of this stack")
    given = launched.get("id")
    if isinstance(given, Unknown):
        return PASS if templates else unknown_because("whose launch template it has is not known yet")
    return fail_because(f"its launch template {given} is not of this stack") if given in foreign else PASS


def _stack_with_machine(template: Any, *own: str) -> JudgedStack:
    templates = (JudgedResource(TEMPLATE, {"name": name}, name) for name in own)
    return JudgedStack((*templates, JudgedResource(MACHINE, {"launchTemplate": template}, "resnet/main-0")))


RULE = StackRule(
    id="foreign-templates",
    level="mandatory",
    asks="Machines come from launch templates of their own stack, whose settings other rules judge.",
    remedy="declare the launch template in this stack, or write its settings in the machine",
    types=types_of_part("machine", "template"),
    judge=judge_templates,
    passes={
        "a template of the stack": _stack_with_machine({"id": "lt-0a1b2c3d"}, "resnet"),
        "a template that is made later": _stack_with_machine({"id": Unknown("launchTemplate.id")}, "resnet"),
        "a template by its name": _stack_with_machine({"name": "resnet"}, "resnet"),
        "no template": JudgedStack((JudgedResource(MACHINE, {"ami": "ami-0a1b2c3d"}, "resnet/main-0"),)),
    },
    fails={
        "a template of somebody's": _stack_with_machine({"id": "lt-0a1b2c3d"}),
        "another name": _stack_with_machine({"name": "somebodys"}, "resnet"),
    },
    unknown={"a template of another stack": _stack_with_machine({"id": Unknown("launchTemplate.id")})},
)
