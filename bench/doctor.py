# SPDX-License-Identifier: Apache-2.0
"""`trainyard doctor` as a whole process: the part of this machine against `trainyard --version`, and that of a stack on
a quiet local cloud against the part of this machine."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from bench.harness.rows import Aim, Row, in_turns, process_row, spent
from localcloud import control
from tests.support.prepared_tenancy import Prepared

LOCAL, STACK = Aim("figure", 0.5), Aim("figure", 5.0)
_TRAINYARD = (sys.executable, "-m", "trainyard")


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="trainyard-bench-") as folder:
        cloud = control.start_cloud(Path(folder, "cloud"))
        try:
            # Credentials, so that there is something to judge on this machine.
            with patch.dict("os.environ", {**os.environ, "OCI_CONFIG_FILE": str(cloud.config_file)}):
                return _rows_of_cloud(cloud, Path(folder))
        finally:
            control.stop_cloud(cloud.home)


def _rows_of_cloud(cloud: control.Cloud, folder: Path) -> list[Row]:
    prepared = Prepared(cloud, folder)
    prepared.write_stack()
    prepared.grant_printed_access()
    words = (*_TRAINYARD, "doctor", str(prepared.file), "--home", str(cloud.home))
    version, machine, stack = in_turns(
        lambda: spent([*_TRAINYARD, "--version"]), lambda: spent([*_TRAINYARD, "doctor"]), lambda: spent(words)
    )
    return [
        process_row("doctor, this machine", "trainyard --version", machine, version, LOCAL),
        process_row("doctor, a stack", "doctor of this machine", stack, machine, STACK),
    ]
