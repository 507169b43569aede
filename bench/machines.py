# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster start in parallel: the time until all are ready, against one machine as slow as the slowest.

They are instances of the local AWS that run their user data. Each boots some seconds longer than necessary, as drivers,
disks and downloads cause on real machines. Otherwise the few processors of this machine would be the limit.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.harness.rows import Aim, Row
from localcloud import control
from tests.support.aws_clients import AwsClients
from tests.support.local_machines import LocalMachines

# By the number of machines: how many times the time of one machine they may take together.
AIMS = {4: 1.25, 8: 1.5}
SLOWEST, OTHERS = 20.0, 10.0


def rows() -> list[Row]:
    one = _seconds_until_ready(1)
    return [_row(machines, limit, one) for machines, limit in AIMS.items()]


def _row(machines: int, limit: float, one: float) -> Row:
    seconds = _seconds_until_ready(machines)
    against = f"one machine that boots {SLOWEST:g} s longer, as the slowest of them does"
    return Row(f"{machines} machines ready", seconds, "s", against, one, seconds / one, Aim("ratio", limit))


def _seconds_until_ready(machines: int) -> float:
    names = ["main-0", *(f"worker-{number}" for number in range(machines - 1))]
    slow = {name: SLOWEST if name == names[-1] else OTHERS for name in names}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            clients = AwsClients(control.start_cloud(home / "cloud"))
            machines_up = LocalMachines(clients, home, names, {"train.py": ""}, slow)
            machines_up.ready()
            return time.monotonic() - machines_up.began
        finally:
            control.stop_cloud(home / "cloud")
