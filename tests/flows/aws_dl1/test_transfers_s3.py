# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` on S3: whole files and parts, checksums, resumed transfers, and refusals."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result

from components.aws.client.files import BucketStore, checksum_of, open_aws_store
from components.platform import streams
from components.platform.calls import ProviderError
from components.platform.client import Where
from components.platform.files import StoreRequest
from tests.support.aws_cluster import STACK, AwsWorld, aws_world
from trainyard.cli.main import main

MEBIBYTE = 1 << 20
FILE = """\
config:
  aws:region: us-east-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: aws-dl1
  trainyard:jobs: {}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsWorld]:
    with aws_world(tmp_path_factory.mktemp("aws")) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / f"Pulumi.{STACK}.yaml").write_text(FILE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # The smallest parts that S3 takes.
    monkeypatch.setattr(streams, "PART_BYTES", 5 * MEBIBYTE)
    return tmp_path


def trainyard(here: Path, command: str, *words: object) -> Result:
    line = ["data", command, STACK, *map(str, words), "--stacks", str(here)]
    return CliRunner().invoke(main, line, catch_exceptions=False)


def test_a_folder_is_uploaded_and_downloaded_again(world: AwsWorld, here: Path) -> None:
    source = here / "images"
    (source / "ü b").mkdir(parents=True)
    (source / "ü b" / "small.txt").write_text("hello")
    (source / "empty").touch()
    (source / "large").write_bytes(os.urandom(12 * MEBIBYTE))
    put = trainyard(here, "put", source)
    assert put.exit_code == 0, put.output
    again = trainyard(here, "put", source)
    assert again.exit_code == 0, again.output
    large = world["s3"].head_object(Bucket=world.bucket, Key="data/images/large")
    assert large["ETag"].endswith('-3"')
    assert large["Metadata"] == {"trainyard-part-bytes": str(5 * MEBIBYTE)}
    got = trainyard(here, "get", "data/images", "--to", here / "copy")
    assert got.exit_code == 0, got.output
    for file in source.rglob("*"):
        if file.is_file():
            copies = [copy for copy in (here / "copy").rglob(file.name) if copy.is_file()]
            assert [copy.read_bytes() for copy in copies] == [file.read_bytes()], file
    listed = trainyard(here, "list", "data/images")
    assert "small.txt" in listed.output


def test_other_content_is_not_overwritten_by_default(world: AwsWorld, here: Path) -> None:
    (here / "file").write_text("one")
    assert trainyard(here, "put", here / "file").exit_code == 0
    (here / "file").write_text("two")
    kept = trainyard(here, "put", here / "file")
    assert kept.exit_code == 1
    assert "other content" in kept.output
    assert trainyard(here, "put", here / "file", "--overwrite").exit_code == 0
    assert world["s3"].get_object(Bucket=world.bucket, Key="data/file")["Body"].read() == b"two"


def test_an_interrupted_upload_resumes(world: AwsWorld, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "cut").write_bytes(os.urandom(16 * MEBIBYTE))
    sent: list[int] = []
    arrived = threading.Event()
    put_part = BucketStore.put_part

    def cut(store: BucketStore, name: str, upload: str, number: int, content: Any) -> None:
        if number > 2:
            arrived.wait(30)
            raise ProviderError("the line is cut")
        put_part(store, name, upload, number, content)
        sent.append(number)
        if len(sent) == 2:
            arrived.set()

    def count(store: BucketStore, name: str, upload: str, number: int, content: Any) -> None:
        sent.append(number)
        put_part(store, name, upload, number, content)

    monkeypatch.setattr(BucketStore, "put_part", cut)
    assert trainyard(here, "put", here / "cut").exit_code == 1
    sent.clear()
    monkeypatch.setattr(BucketStore, "put_part", count)
    assert trainyard(here, "put", here / "cut").exit_code == 0
    assert set(sent) <= {3, 4}
    assert not world["s3"].list_multipart_uploads(Bucket=world.bucket).get("Uploads")


def test_a_bucket_under_a_key_of_kms_keeps_its_checksums(world: AwsWorld, here: Path) -> None:
    """moto states MD5 there, too; the store must not rely on it."""
    store = open_aws_store(StoreRequest("put", Where({}))).bucket("under-a-key")
    world["s3"].create_bucket(Bucket="under-a-key")
    world.more.append("under-a-key")
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}}
    world["s3"].put_bucket_encryption(Bucket="under-a-key", ServerSideEncryptionConfiguration={"Rules": [rule]})
    for name, size in (("small", 10), ("large", 11 * MEBIBYTE)):
        (here / name).write_bytes(os.urandom(size))
        words = (here / name, "kept", "--bucket", "under-a-key")
        assert trainyard(here, "put", *words).exit_code == 0
    (item,) = store.list("kept/small")
    assert item.checksum == ""
    seen = store.look("kept/small")
    assert seen is not None
    assert seen[0].checksum == streams.checksum_text(streams.new_md5((here / "small").read_bytes()).digest())
    again = trainyard(here, "put", here / "small", "kept", "--bucket", "under-a-key")
    assert again.exit_code == 0, again.output


def test_a_missing_bucket_is_reported(world: AwsWorld, here: Path) -> None:
    listed = trainyard(here, "list", "--bucket", "nobody-made-this")
    assert listed.exit_code == 1
    assert "Somebody removed the bucket" in listed.output


def test_a_refusal_names_the_statements_that_are_missing() -> None:
    answer = {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
    error = ProviderError("List the objects of b: no")
    error.__cause__ = ClientError(answer, "ListObjectsV2")
    explained = open_aws_store(StoreRequest("get", Where({})))._explain("b", error)
    assert '"Action": ["s3:ListBucket"], "Resource": "arn:aws:s3:::b"' in explained.remedy
    assert '"Action": ["s3:GetObject"], "Resource": "arn:aws:s3:::b/*"' in explained.remedy


@pytest.mark.parametrize(
    ("etag", "checksum"),
    [
        ('"d41d8cd98f00b204e9800998ecf8427e"', "1B2M2Y8AsgTpgAmY7PhCfg=="),
        ('"d41d8cd98f00b204e9800998ecf8427e-3"', "1B2M2Y8AsgTpgAmY7PhCfg==-3"),
        ('"opaque"', ""),
    ],
)
def test_etags_are_checksums(etag: str, checksum: str) -> None:
    assert checksum_of(etag) == checksum
