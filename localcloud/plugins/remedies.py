# SPDX-License-Identifier: Apache-2.0
"""The commands in messages of plugins: those of `trainyard`, and those of plain Pulumi."""

import os
import shlex
from pathlib import Path

_SHIPPED = Path(__file__).resolve().parents[2] / "stacks"
_LOCAL = {"up": "up", "destroy": "down", "import": "import"}


def commands(urn: str, word: str, *options: str) -> str:
    """A command of Pulumi on the stack of a resource, for those who call `trainyard` and for those who call Pulumi."""
    stack = urn.removeprefix("urn:pulumi:").partition("::")[0]
    # Set by `trainyard` for the engine.
    folder = Path(os.environ.get("TRAINYARD_STACKS") or _SHIPPED)
    where = [] if folder == _SHIPPED else ["--stacks", str(folder)]
    local = shlex.join(["trainyard", _LOCAL[word], stack, "--local", *options, *where])
    return (
        f"`{local}` (or, where you call Pulumi yourself, `{shlex.join(['pulumi', word, '--stack', stack, *options])}`)"
    )
