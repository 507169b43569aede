# SPDX-License-Identifier: Apache-2.0
"""docs/launcher.md has all placeholders, variables and exit codes of the launcher."""

from __future__ import annotations

import re
from pathlib import Path

from catalog import frameworks
from launcher import exits
from launcher.placeholders import Place, node_values, process_values
from launcher.stray_files import ALL_BYTES, CACHES, FILE_BYTES, MOST_FILES
from tests.support.documents import launch

PAGE = (Path(__file__).parents[3] / "docs" / "launcher.md").read_text("utf-8")


def test_the_page_lists_every_placeholder() -> None:
    made = launch()
    given = {*node_values(made, Place(("a", "b", "c"), "a", "eth0")), *process_values(made, 0), "port.X", "option.X"}
    kinds = {name.partition(".")[0] + ("." if "." in name else "") for name in given}
    listed = {name.partition(".")[0] + ("." if "." in name else "") for name in re.findall(r"`\{([a-zA-Z_.]+)\}", PAGE)}
    assert listed | set(re.findall(r"\{([a-z_]+)\}", PAGE)) >= {kind for kind in kinds if not kind.endswith(".")}
    assert listed >= {kind for kind in kinds if kind.endswith(".")}


def test_the_page_lists_the_codes_of_each_kind() -> None:
    for kind in (exits.TRANSIENT, exits.PERMANENT):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {kind} |"))
        told = {int(number) for number in re.findall(r"\d+", row.split("|")[2])}
        assert told == {int(code) for code, (found, _) in exits.KINDS.items() if found == kind}


def test_the_page_names_what_each_framework_is_told() -> None:
    for name in ("dask", "pytorch"):
        assert all(f"`{variable}`" in PAGE for variable in frameworks.framework_row(name).environment), name


def test_the_page_lists_what_is_not_kept_and_why() -> None:
    for row in CACHES:
        listed = next(line for line in PAGE.splitlines() if line.startswith(f"| `{row.names[0]}`"))
        assert re.findall(r"`([^`]+)`", listed) == list(row.names)
        assert row.why in listed
        assert ("directly in the working directory" in listed) == row.at_top
    silent, named = PAGE.split("These are not kept, but named")
    assert all(f"| `{row.names[0]}`" in (named if row.named else silent) for row in CACHES)
    limits = (f"{FILE_BYTES // 1_000_000} MB", f"{ALL_BYTES // 1_000_000} MB", f"{MOST_FILES:,} files")
    assert all(limit in silent for limit in limits)
