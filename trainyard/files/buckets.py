# SPDX-License-Identifier: Apache-2.0
"""Which bucket is a stack's: its own, an existing one, or that of the stack it uses."""

from __future__ import annotations

from pathlib import Path

from components.platform.file_errors import TransferError
from schemas.model import Stack


def bucket_name(file: Path, stack: Stack) -> str:
    """TransferError if the bucket belongs to a stack whose file does not lie beside this one."""
    owners = _beside(file) if stack.answer("bucket") == "taken" else {}
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


def _beside(file: Path) -> dict[str, Stack]:
    """The stacks of this folder that the file's stack uses, and those that these use."""
    from schemas.judge import judge_file
    from schemas.neighbours import find_neighbours

    return {one.stack.name: one.stack for one in find_neighbours([file], [judge_file(file)]) if one.stack}
