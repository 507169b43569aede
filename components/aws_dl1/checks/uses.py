# SPDX-License-Identifier: Apache-2.0
"""Checks of what a stack takes from another one: AWS's policies name what they are about."""

from __future__ import annotations

from collections.abc import Iterator

from components.aws_dl1.checks.registry import rule
from components.aws_dl1.stack import AwsDl1Stack
from schemas.checks.registry import Wrong, at
from schemas.facts import Facts

# What the policies of a stack name, and what to do so that the name is known.
_NAMED = {
    "bucket": "name it here: `bucket: { existing: NAME }`",
    "registry": "name it here: `registry: { existing: REPOSITORY }`",
    "logs": "this stack makes a log group of its own",
}


@rule("TY867", "something is taken from another stack that policies have to name")
def taken_names(stack: AwsDl1Stack, _: Facts) -> Iterator[Wrong]:
    if stack.uses is None:
        return
    if "access" in stack.uses.take:
        message = "policies name the jobs of their own stack, so those of another stack give nothing to these jobs"
        remedy = "take the rest, and make the access here, or name the role: `access: { existing: true, runs: ROLE }`"
        yield Wrong(at("uses", "take"), message, remedy)
    if not stack.makes("access"):
        return
    for concern in stack.uses.take:
        if concern in _NAMED:
            message = f"this stack's policies have to name the {concern}, but only {stack.uses.stack} knows its name"
            yield Wrong(at("uses", "take"), message, f"remove `{concern}`; {_NAMED[concern]}")
