# SPDX-License-Identifier: Apache-2.0
"""Launchers' status on a storage of the local cluster, in which tasks may have put anything."""

from pathlib import Path

import pytest

from components.openpai.client.jobs import EXTRAS, Job, start_of_job
from components.openpai.client.storages import Storages

_OWN = {"version": 1, "nodes": [{"name": "worker-0", "role": "worker"}], "folder": "file:///data/team/train/first/1"}
_MOUNTS = [{"name": "results", "mountPath": "/data"}, {"name": "..", "mountPath": "/up"}]
JOB = Job("anna", "train-0123abcd", {"extras": {EXTRAS: _OWN, "storages": _MOUNTS}})
START = start_of_job(JOB.name, 2)


@pytest.fixture
def storages(tmp_path: Path) -> Storages:
    folder = tmp_path / "storages/results/team/train/first/1" / START / "status"
    folder.mkdir(parents=True)
    (folder / "0.json").write_text('{"rank": 0, "state": "running", "progress": {"loss": 0.5}}')
    (folder / "1.json").write_text("[")
    secret = tmp_path / "secret.json"
    secret.write_text('{"rank": 2, "state": "running", "reason": "a secret"}')
    (folder / "2.json").symlink_to(secret)
    return Storages(tmp_path / "storages")


def test_a_start_is_called_as_its_launchers_call_it() -> None:
    from launcher.openpai.identity import start_of_attempt as launchers

    for name in ("train-0123abcd", "-" * 3 + "a" * 80, "a" * 60 + "-0123abcd-2"):
        assert start_of_job(name, 3) == launchers(f"anna~{name}", "3")


def test_a_status_is_read_and_no_link_is_followed(storages: Storages) -> None:
    status = storages.status(JOB, f"{JOB.folder}/{START}", 0)
    assert status is not None
    assert status["progress"] == {"loss": 0.5}
    for rank in (1, 2, 3):
        assert storages.status(JOB, f"{JOB.folder}/{START}", rank) is None


@pytest.mark.parametrize(
    "folder",
    [
        None,
        "s3://bucket/a",
        "file:///elsewhere/a",
        "file:///up/a",
        "file:///data/../a",
        "file://[data/a",
        "file:///data/%00",
        "file:///data/\ud800",
    ],
)
def test_a_folder_outside_of_the_storages_has_no_status(storages: Storages, folder: str | None) -> None:
    assert storages.status(JOB, folder, 0) is None
