# SPDX-License-Identifier: Apache-2.0
"""cloud-init's own schema accepts the user data."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from components.aws.node_setup import NodeSettings, user_data


def test_cloud_inits_schema_accepts_the_user_data(tmp_path: Path) -> None:
    settings = NodeSettings(
        region="us-east-1", bucket="vision-dev-runs", job="resnet",
        launcher=".trainyard/launcher/0123456789abcdef.tar.gz", log_group="vision-dev", ssh_secret="vision-dev-resnet",
        image="123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/dt:1.0", release="1.15.1", efa_interfaces=4,
        stop_when_idle_minutes=30,
    )  # fmt: skip
    cloud_init = shutil.which("cloud-init")
    if cloud_init is None:
        pytest.skip("cloud-init is not installed (tests/apt-packages.txt)")
    file = tmp_path / "user-data"
    file.write_text(user_data(settings), "utf-8")
    done = subprocess.run(
        [cloud_init, "schema", "--config-file", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Valid cloud-config" in done.stdout) == (0, True), done.stdout + done.stderr
