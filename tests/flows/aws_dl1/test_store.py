# SPDX-License-Identifier: Apache-2.0
"""The launcher's store on S3, and the launcher's AWS credentials."""

from __future__ import annotations

import base64
import hashlib
import io
import time
from pathlib import Path

import pytest

from launcher.aws_dl1.bucket import BucketFolder
from launcher.aws_dl1.fetch import AwsError, Identity
from launcher.aws_dl1.services import read_aws_secret
from launcher.printing import LinePrinter
from launcher.stores import EXISTS, StoreError, folder_opener
from tests.support.aws_machines import REGION, Instance, client, metadata, role

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": REGION}


def test_objects_of_a_folder_are_put_listed_read_and_removed(aws: str, bucket: str, tmp_path: Path) -> None:
    folder = folder_opener({**KEYS, "AWS_ENDPOINT_URL": aws}, LinePrinter())(f"s3://{bucket}/resnet/base")
    folder.put("peers/1", b"one", new=True)
    with pytest.raises(StoreError) as refused:
        folder.put("peers/1", b"two", new=True)
    assert refused.value.status == EXISTS
    strange = "peers/a b+c%20~é\x01&<>"
    etag = folder.put(strange, b"x")
    listed = {row.name: row for row in folder.list("peers/")}
    assert set(listed) == {"peers/1", strange}
    assert (listed[strange].etag, listed[strange].size) == (etag, 1)
    assert (folder.get(strange), folder.get("peers/none")) == (b"x", None)
    folder.remove(strange)
    folder.remove(strange)
    assert [row.name for row in folder.list("")] == ["peers/1"]


def test_a_list_continues_after_a_page(aws: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BucketFolder, "page_size", 2)
    folder = folder_opener({**KEYS, "AWS_ENDPOINT_URL": aws}, LinePrinter())(f"s3://{bucket}")
    names = [f"many/{number} +" for number in range(5)]
    for name in names:
        folder.put(name, b"")
    assert [row.name for row in folder.list("many/")] == names


def test_a_file_keeps_its_modification_time(aws: str, bucket: str, tmp_path: Path) -> None:
    folder = folder_opener({**KEYS, "AWS_ENDPOINT_URL": aws}, LinePrinter())(f"s3://{bucket}/output")
    md5 = base64.b64encode(hashlib.md5(b"model", usedforsecurity=False).digest()).decode()
    folder.put_file("model.pt", io.BytesIO(b"model"), 5, 1_700_000_000.25, md5)
    folder.get_file("model.pt", str(tmp_path / "model.pt"))
    assert (tmp_path / "model.pt").read_bytes() == b"model"
    assert (tmp_path / "model.pt").stat().st_mtime == 1_700_000_000.25


def test_credentials_of_the_role_are_fetched_with_a_token_and_renewed(aws: str, bucket: str) -> None:
    instance = Instance(role("AKIAROLE1", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60))))
    instance.answers["/latest/meta-data/placement/region"] = REGION
    with metadata(instance) as address:
        identity = Identity({"AWS_EC2_METADATA_SERVICE_ENDPOINT": address, "AWS_ENDPOINT_URL": aws})
        assert (identity.region, identity.credentials().key) == (REGION, "AKIAROLE1")
        # The credentials expire within five minutes, so the next use fetches new ones.
        instance.answers.update(role("AKIAROLE2", "2099-01-01T00:00:00Z"))
        assert identity.credentials().key == "AKIAROLE2"
        instance.answers.update(role("AKIAROLE3", "2099-01-01T00:00:00Z"))
        assert identity.credentials().key == "AKIAROLE2"
        # A token that the metadata service no longer accepts is replaced.
        instance.tokens.clear()
        identity.renew()
        assert identity.credentials().key == "AKIAROLE3"
        instance.answers.clear()
        identity.renew()
        with pytest.raises(AwsError, match="give it an instance profile"):
            identity.credentials()


def test_a_secret_is_read_by_the_role_and_a_missing_one_is_named(aws: str) -> None:
    client(aws, "secretsmanager").create_secret(Name="key", SecretString="content")
    identity = Identity({**KEYS, "AWS_ENDPOINT_URL": aws})
    assert read_aws_secret(identity, "key") == "content"
    with pytest.raises(AwsError, match="ResourceNotFoundException"):
        read_aws_secret(identity, "none")
