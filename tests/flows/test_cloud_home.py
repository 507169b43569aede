# SPDX-License-Identifier: Apache-2.0
"""A local cloud belongs to its folder."""

import shutil
from pathlib import Path

from localcloud import control, processes
from tests.cloud_fixture import eventually


def test_a_cloud_ends_when_its_folder_is_removed(tmp_path: Path) -> None:
    home = tmp_path / "cloud"
    cloud = control.start(home)
    started = processes.start_time(cloud.pid)
    try:
        shutil.rmtree(home)
        eventually(lambda: processes.is_same(cloud.pid, started), lambda runs: not runs)
    finally:
        control.stop(home)
