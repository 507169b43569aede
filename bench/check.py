# SPDX-License-Identifier: Apache-2.0
"""`trainyard check` as a whole process, against a process that only parses the same YAML and validates its schema."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from bench.harness.rows import ROOT, Aim, Row, in_turns, process_row, spent

FILES = 200
AIMS = {1: Aim("figure", 0.35), FILES: Aim("figure", 3.0)}
FLOOR = """\
import json, sys
import jsonschema, yaml
with open("schemas/stack.schema.json") as file:
    validator = jsonschema.Draft202012Validator(json.load(file))
for name in sys.argv[1:]:
    with open(name) as file:
        assert not list(validator.iter_errors(yaml.load(file, Loader=yaml.CSafeLoader)))
"""


def rows() -> list[Row]:
    # The folder is inside the project, because a stack's code must be.
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT) as folder:
        many = copies(Path(folder), FILES)
        return [_row(many[:count], aim) for count, aim in AIMS.items()]


def _row(files: list[str], aim: Aim) -> Row:
    ours, floor = in_turns(
        lambda: spent([sys.executable, "-m", "trainyard", "check", *files]),
        lambda: spent([sys.executable, "-c", FLOOR, *files]),
    )
    what = "1 file" if len(files) == 1 else f"{len(files)} files"
    return process_row(f"check {what}", "parse and validate only", ours, floor, aim)


def copies(folder: Path, count: int) -> list[str]:
    """Copies of the examples and their folders, each copy for another team."""
    stacks = ROOT / "stacks"
    for beside in (path for path in stacks.iterdir() if path.is_dir()):
        (folder / beside.name).symlink_to(beside)
    examples = sorted(stacks.glob("Pulumi.*.yaml"))
    files = [folder / f"Pulumi.copy-{index}.yaml" for index in range(count)]
    for index, file in enumerate(files):
        text = examples[index % len(examples)].read_text("utf-8")
        file.write_text(re.sub(r"(trainyard:team: .*)", rf"\g<1>-{index}", text), "utf-8")
    return [str(file) for file in files]
