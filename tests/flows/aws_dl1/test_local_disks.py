# SPDX-License-Identifier: Apache-2.0
"""An empty local disk gets a file system, and one with data keeps it. With real block devices of the kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from launcher.aws_dl1.machine import disks


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def loop(file: Path) -> Iterator[str]:
    with file.open("wb") as made:
        made.truncate(32 << 20)
    device = run("losetup", "--find", "--show", str(file))
    try:
        yield device
    finally:
        run("losetup", "--detach", device)


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[tuple[str, str]]:
    if os.geteuid() or not Path("/dev/loop-control").exists():
        pytest.skip("only root makes devices, where the kernel has loops")
    with ExitStack() as stack:
        try:
            yield tuple(stack.enter_context(loop(tmp_path / name)) for name in ("first", "second"))  # type: ignore[misc]
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"this machine gives no loop devices: {error}")


def test_an_empty_disk_is_formatted_and_mounted_and_one_with_a_file_system_stays(
    devices: tuple[str, str], tmp_path: Path
) -> None:
    blank, full = devices
    run("mkfs.ext4", "-q", "-L", "theirs", full)
    assert disks.make_file_system([full]) == ""
    assert run("blkid", "-p", "-o", "value", "-s", "LABEL", full) == "theirs"
    assert disks.make_file_system([full, blank]) == blank
    assert run("blkid", "-p", "-o", "value", "-s", "LABEL", blank) == "trainyard"
    assert disks.make_file_system([full, blank]) == "", "the second time it has one"
    folder = tmp_path / "scratch"
    try:
        disks.mount_device(blank, folder)
        (folder / "written").write_text("it may be written")
        assert os.path.ismount(folder)
    finally:
        run("umount", str(folder))
