# SPDX-License-Identifier: Apache-2.0
"""The root of a machine cannot get out of it, neither directly nor by files that it leaves on its disk."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.hosts.conftest import require_installed_tools
from tests.flows.hosts.machine_work import TRIED

ROOT = Path(__file__).parents[3]
SECRET, NAME = secrets.token_hex(16), secrets.token_hex(16)
ACCOUNTS = {"own": (), "unprivileged": ("unshare", "--user", "--map-user=65534", "--map-group=65534")}


@pytest.mark.parametrize("account", ACCOUNTS)
def test_no_attempt_escapes_from_a_machine(account: str, tmp_path: Path) -> None:
    if account == "unprivileged":
        require_installed_tools()
    planted = tmp_path / "key"
    planted.write_text(SECRET)
    with socket.create_server(("0.0.0.0", 0)) as listener, socket.socket(socket.AF_UNIX) as by_name:
        by_name.bind(f"\0{NAME}")
        by_name.listen()
        ways = {
            "CLOUD": tmp_path, "OTHER": tmp_path / "machines", "CHECKOUT": ROOT, "USER": tmp_path, "PLANTED": planted,
            "TEMPORARY": planted, "SECRET": SECRET[::-1], "ADDRESSES": "127.0.0.1", "ABSTRACT": NAME,
            "SOCKET": planted, "SERVER": os.getpid(), "PORT": listener.getsockname()[1], "SEGMENT": 1,
        }  # fmt: skip
        variables = {f"WAY_{name}": str(value) for name, value in ways.items()}
        done = subprocess.run(
            [*ACCOUNTS[account], sys.executable, "-m", "tests.flows.hosts.machine_work", str(tmp_path / "work")],
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **variables},
            cwd=ROOT, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    lines = result["tried"].splitlines()
    assert lines[-1:] == ["all tried"], result
    out = [(TRIED[int(line.split(" ")[0])].name, line) for line in lines[:-1] if line.split(" ")[1] != "held"]
    assert not out
    second = result["second"]
    assert second["outside"] == [], second
    assert second["heard"][0][0] in ("running", "failed"), second
