# SPDX-License-Identifier: Apache-2.0
"""Which bucket is a stack's: its own, an existing one, or that of the stack it uses."""

from __future__ import annotations

from pathlib import Path

from schemas.judge import Judged, judge_file
from schemas.model import Stack
from schemas.neighbours import find_neighbours
from transfers.errors import TransferError


def bucket_name(file: Path, stack: Stack) -> str:
    """TransferError if the bucket belongs to a stack whose file does not lie beside this one."""
    owners: dict[str, Stack] = {}
    if stack.answer("bucket") == "taken":
        judged: list[Judged] = [judge_file(file)]
        owners = {one.stack.name: one.stack for one in find_neighbours([file], judged) if one.stack}
    seen = {stack.name}
    while stack.answer("bucket") == "taken" and stack.uses is not None:
        name = stack.uses.stack.rpartition("/")[2]
        if name not in owners or name in seen:
            raise TransferError(
                f"the bucket belongs to the stack {stack.uses.stack}, whose file is not beside {file}\n"
                f'Say which it is: --bucket "$(pulumi stack output bucket -s {stack.uses.stack})"'
            )
        seen.add(name)
        stack = owners[name]
    return stack.bucket_name
