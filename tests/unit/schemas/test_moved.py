# SPDX-License-Identifier: Apache-2.0
"""The first hour's stack file on another platform: one `check` names every change, with the text to type."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.judge import judge_file
from tests.support.first_hour import SCRIPTS, obey_check, read_stack, write_stack


# On AWS DL1 five of the errors refuse a job.
@pytest.mark.parametrize(("platform", "count"), [("openpai", 4), ("aws-dl1", 8)])
def test_what_check_names_at_once_is_all_there_is(tmp_path: Path, platform: str, count: int) -> None:
    shutil.copytree(SCRIPTS, tmp_path, dirs_exist_ok=True)
    data, file = read_stack(), tmp_path / "Pulumi.first.yaml"
    data["config"]["trainyard:platform"] = platform
    write_stack(data, file)
    errors = obey_check(file)
    assert len(errors) == count, errors
    assert judge_file(file).errors == ()
