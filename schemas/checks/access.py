# SPDX-License-Identifier: Apache-2.0
"""Checks of who may do what, and of what is taken from another stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from schemas.checks.network import is_production
from schemas.checks.registry import Wrong, at, rule
from schemas.convert import default_of
from schemas.facts import Facts
from schemas.model import Stack

# Keys that a stack may set although it takes the concern from another stack.
_OWN_ANYWAY = {("access", "mode"), ("access", "users"), ("network", "flow_log")}
_STACK = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")


@rule("TY704", "proof-of-concept access in a production environment")
def open_production(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.access.mode == "proof-of-concept" and is_production(stack):
        message = f"gives the runs far more than they need, and `{stack.environment}` is a production environment"
        yield Wrong(at("access", "mode"), message, "use `least-privilege`")


@rule("TY707", "something is taken from another stack and described here too")
def taken_and_own(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None:
        return
    for concern in stack.uses.take:
        if _is_described(stack, concern):
            message = f"`{concern}` is taken from the stack {stack.uses.stack}, but also described here"
            yield Wrong(at(concern), message, f"remove it here, or remove `{concern}` under `uses`")


def _is_described(stack: Stack, concern: str) -> bool:
    """A stack names its access mode and its users even if another stack grants the access."""
    part = getattr(stack, concern)
    own = (column for column in fields(part) if (concern, column.name) not in _OWN_ANYWAY)
    return any(getattr(part, column.name) != default_of(column) for column in own)


@rule("TY709", "the stack is not named as organization/project/stack")
def stack_reference(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None and not _STACK.fullmatch(stack.uses.stack):
        message = f"`{stack.uses.stack}` does not name a stack"
        yield Wrong(
            at("uses", "stack"),
            message,
            "write organization/project/stack; with a backend of your own, the organization is `organization`",
        )


@rule("TY714", "a stack that takes from itself")
def takes_from_itself(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is not None and stack.uses.stack.endswith(f"/trainyard/{stack.name}"):
        message = f"`{stack.uses.stack}` is this stack, which cannot take from itself"
        yield Wrong(at("uses", "stack"), message, "name the stack that owns what this one takes")
