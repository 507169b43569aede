# SPDX-License-Identifier: Apache-2.0
"""The project file, Pulumi.yaml: its `config:` gives every stack values, which the engine takes and nothing else reads.

So a key of ours may not get its value there: check, plan and review would judge another stack than `up` makes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.shape import Problem
from schemas.source import Source, read_source

PROJECT_FILE = "Pulumi.yaml"
_NAME = "trainyard"


def project_value_problems(stack_file: Path, config: Mapping[str, Any]) -> Iterator[Problem]:
    """A problem for each of our keys that the project gives a value, and this stack's configuration does not."""
    folder = stack_file.absolute().parent
    project = next(filter(None, (_project_with_stacks(above, folder) for above in (folder, *folder.parents))), None)
    values = project.data.get("config") if project else None
    for key, given in (values if isinstance(values, Mapping) else {}).items():
        namespace, _, name = key.rpartition(":")
        own = f"{_NAME}:{name}"
        if namespace not in ("", _NAME) or own in config or not _gives_value(given):
            continue
        assert project is not None
        shown, line = os.path.relpath(project.file, folder), project.position(("config", key))[0]
        yield Problem(
            "TY0000",
            ("config", own),
            f"`{own}` has its value in {shown}, line {line}: `pulumi up` would take it, but check, plan and review read"
            " the stack file only",
            f"move it into the stack file, and remove it from {shown}",
        )


def _project_with_stacks(folder: Path, stacks: Path) -> Source | None:
    """The project file of this folder, if the engine finds stack files in `stacks` by it."""
    file = folder / PROJECT_FILE
    source = read_source(file) if file.is_file() else None
    if source is None or not isinstance(source.data, Mapping) or source.data.get("name") != _NAME:
        return None
    return source if Path(os.path.abspath(folder / str(source.data.get("stackConfigDir") or "."))) == stacks else None


def _gives_value(given: Any) -> bool:
    """Whether an entry of `config:` is a value. It may also only declare a type, or explain the key."""
    return not isinstance(given, Mapping) or bool({"value", "default"} & set(given))
