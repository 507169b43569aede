# SPDX-License-Identifier: Apache-2.0
"""Which local disks of a machine are used. The answers are those of util-linux's lsblk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from launcher.aws_dl1.machine.disks import Disks, parse_disks

STORE, EBS = "Amazon EC2 NVMe Instance Storage        ", "Amazon Elastic Block Store              "


def disk(name: str, model: str | None = STORE, kind: str = "disk", **more: Any) -> dict[str, Any]:
    row = {"name": name, "type": kind, "model": model, "fstype": None, "label": None, "mountpoint": None}
    return {**row, **more}


ROOT = disk("nvme0n1", EBS, children=[disk("nvme0n1p1", None, "part", fstype="xfs", label="/", mountpoint="/")])
ARRAY = disk("md127", None, "raid0", fstype="ext4", label="trainyard", mountpoint=None)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([ROOT], Disks("", False, ())),
        ([ROOT, disk("nvme2n1"), disk("nvme1n1")], Disks("", False, ("/dev/nvme1n1", "/dev/nvme2n1"))),
        # An attached volume is not one of the machine's local disks.
        ([ROOT, disk("nvme1n1", EBS), disk("sdb", None)], Disks("", False, ())),
        ([ROOT, disk("nvme1n1", fstype="ext4")], Disks("", False, ())),
        ([ROOT, disk("nvme1n1", mountpoint="/data")], Disks("", False, ())),
        ([ROOT, disk("nvme1n1", children=[disk("nvme1n1p1", None, "part")])], Disks("", False, ())),
        # After a reboot, and when the program is started again.
        ([ROOT, disk("nvme1n1", fstype="ext4", label="trainyard")], Disks("/dev/nvme1n1", False, ())),
        (
            [ROOT, *(disk(f"nvme{n}n1", fstype="linux_raid_member", children=[ARRAY]) for n in (1, 2))],
            Disks("/dev/md127", False, ()),
        ),
        (
            [disk("nvme1n1", fstype="ext4", label="trainyard", mountpoint="/var/lib/trainyard/scratch")],
            Disks("/dev/nvme1n1", True, ()),
        ),
    ],
)
def test_only_idle_disks_of_the_machine_itself_are_used(rows: list[dict[str, Any]], wanted: Disks) -> None:
    assert parse_disks(json.dumps({"blockdevices": rows})) == wanted
