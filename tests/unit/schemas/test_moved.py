# SPDX-License-Identifier: Apache-2.0
"""The first hour's stack file on another platform: `check` names every change, with the text to type."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.judge import judge_file
from tests.support.first_hour import SCRIPTS, obey_check, read_stack, write_stack


# On AWS the image of the machines depends on the machine, so it is named when the machine is known.
@pytest.mark.parametrize(("platform", "counts"), [("openpai", [4]), ("aws", [2, 1])])
def test_what_check_names_is_all_there_is(tmp_path: Path, platform: str, counts: list[int]) -> None:
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True)
    data, file = read_stack(), tmp_path / "Pulumi.first.yaml"
    data["config"]["trainyard:platform"] = platform
    write_stack(data, file)
    for count in counts:
        errors = obey_check(file)
        assert len(errors) == count, errors
    assert judge_file(file).errors == ()
