# SPDX-License-Identifier: Apache-2.0
"""The hosts do not open an archive of a run: its node does, within what the node may have."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from localcloud.hosts import child_process, limits, node_setup, specification
from localcloud.hosts.assignment import Assignment, Group, NodeWork, Outline, RunCode, judge_run_results
from localcloud.hosts.fabric import NodePlace

ROOM = 1 << 20


def _assignment(folder: Path, code: RunCode, script: str) -> Assignment:
    work = NodeWork((), ("one",), script, lambda endpoints, given: {}, "", "", 0, 0)
    return Assignment(
        id="run", name="run", folder=folder, outline=Outline((Group("", 1, 1),), 0), works=[work], code=code, mounts=(),
        subnet=None, interfaces=(), lines=lambda group, rank: lambda lines: None, upkeep=lambda: asyncio.sleep(0),
    )  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Prepares and carries out a run of one bare node. Returns the files that existed before it started, the details of
    its end, and its output."""
    most = {**limits.node_limits(0, 0, 1, tmp_path), "disk": ROOM}
    monkeypatch.setattr(limits, "node_limits", lambda *_: most)

    def carry_out(content: Path, script: str) -> tuple[list[str], str, str]:
        folder = tmp_path / "run"
        folder.mkdir()
        assignment = _assignment(folder, RunCode(content, content.name, "ENTRY", "code"), script)
        [node] = node_setup.prepare_nodes(assignment, [NodePlace("127.0.0.1", ("http://127.0.0.1:9",))])
        before = [path.name for path in (folder / "node-0").rglob("*")]
        spec = folder / "spec.json"
        spec.write_text(json.dumps(specification.build_specification(assignment, node, 1, (), 60, None)))
        words = child_process.module_command("localcloud.hosts.supervisor", str(spec))
        done = subprocess.run(
            words, capture_output=True, text=True, env=child_process.interpreter_variables(), check=True
        )
        result = json.loads(specification.result_path(folder, 0).read_text())
        return before, judge_run_results(assignment.outline, {0: result}).details, done.stdout + done.stderr

    return carry_out


def _archive(folder: Path, **files: bytes) -> Path:
    path = folder / "code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_node_unpacks_its_own_archive_and_stops_at_its_limit(run: Any, tmp_path: Path) -> None:
    bomb = _archive(tmp_path, **{"main.py": b"print('ran')", "bomb": b"\0" * (64 * ROOM)})
    before, details, printed = run(bomb, "main.py")
    assert before == [], "the hosts have unpacked nothing"
    assert details.startswith("The artifact cannot be unpacked: its files are larger than the disk of a node")
    assert printed == ""
    left = [path.stat().st_size for path in (tmp_path / "run" / "node-0").rglob("*") if path.is_file()]
    assert sum(left) <= ROOM


def test_an_archive_within_the_limit_starts(run: Any, tmp_path: Path) -> None:
    script = "import os, sys; print(os.path.basename(os.getcwd()), sys.argv[1], 'TRAINYARD_UNPACKING' in os.environ)"
    good = _archive(tmp_path, **{"main.py": script.encode()})
    before = os.stat(good)
    assert run(good, "main.py") == ([], "", "code one False\n")
    assert good.read_bytes()[:2] == b"PK"
    assert os.stat(good).st_uid == before.st_uid


def test_a_script_is_copied_and_started(run: Any, tmp_path: Path) -> None:
    (tmp_path / "main.sh").write_text("echo plain $1")
    assert run(tmp_path / "main.sh", "") == (["code", "main.sh"], "", "plain one\n")
