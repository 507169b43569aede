# SPDX-License-Identifier: Apache-2.0
"""Files of runs on OpenPAI: a storage cannot be opened, a bucket only with the caller's keys."""

from pathlib import Path

import pytest

from components.openpai.client.files import open_openpai_store
from components.platform.client import Where
from components.platform.files import StoreRequest, TransferError
from localcloud.control import Cloud

STORAGE = {"trainyard:storage": {"name": "results", "mount": "/data", "folder": "vision/dev"}}
BUCKET = {"trainyard:bucket": {"existing": "b", "region": "eu-west-1", "endpoint": "https://s3.example"}}


def test_a_storage_says_where_the_files_are_and_who_can_show_them() -> None:
    opener = open_openpai_store(StoreRequest("get", Where(STORAGE)))
    with pytest.raises(TransferError, match="the storage results of the cluster, in vision/dev"):
        opener.bucket("anything")
    with pytest.raises(
        TransferError, match="the storage results of the cluster, in vision/dev/train/1\nOpenPAI has no"
    ):
        opener.folder("file:///data/vision/dev/train/1")


def test_a_storage_of_the_local_cloud_is_a_folder_of_this_machine(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path, 1, "", "", "", "", "")
    with pytest.raises(
        TransferError, match=f"keeps them in {tmp_path}/storages/results/vision/dev/.*: copy"
    ) as refused:
        open_openpai_store(StoreRequest("get", Where(STORAGE, cloud))).folder("file:///data/vision/dev/%1b[2J")
    assert "\x1b" not in str(refused.value)


def test_a_bucket_is_asked_where_the_stack_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    opener = open_openpai_store(StoreRequest("get", Where(BUCKET)))
    store, folder = opener.folder("s3://b/train/1")
    assert (store.address, folder) == ("s3://b", "train/1")
    client = store.session.client("s3")  # type: ignore[attr-defined]
    assert (client.meta.endpoint_url, client.meta.region_name) == ("https://s3.example", "eu-west-1")
    with pytest.raises(TransferError, match="not a folder in a bucket"):
        opener.folder("https://elsewhere/x")
