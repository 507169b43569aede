# SPDX-License-Identifier: Apache-2.0
"""`trainyard data` for a stack on OpenPAI with a bucket of an S3 service. It uses the caller's own keys."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from localcloud.control import Cloud
from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import shared_cloud as shared_cloud
from trainyard.cli.main import main

FILE = """\
config:
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: openpai
  trainyard:cluster: { uri: "https://pai.example", user: anna }
  trainyard:skus: { small: { cpus: 1, memoryGb: 1 } }
  trainyard:bucket: { existing: results, region: us-east-1, endpoint: "ENDPOINT" }
  trainyard:jobs:
    train: { framework: pytorch, image: "example.com/torch:1.0", shape: small, roles: { main: 1 }, command: a.py,
      maximumRuntimeMinutes: 60 }
"""


@pytest.mark.parametrize("local", [True, False])
def test_files_are_uploaded_to_the_bucket_and_downloaded_again(
    shared_cloud: Cloud, tmp_path: Path, local: bool
) -> None:
    variables = shared_cloud.env_for("deployer")
    file = tmp_path / "Pulumi.vision-dev.yaml"
    file.write_text(FILE.replace("ENDPOINT", variables["AWS_ENDPOINT_URL"]))
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "one.txt").write_text("one")
    # If the file has the endpoint of S3, no variable is needed.
    hidden = {} if local else {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    where = ["--home", str(shared_cloud.home)] if local else []

    def data(*words: str) -> Result:
        return CliRunner().invoke(main, ["data", *words, "--stacks", str(tmp_path), *where], catch_exceptions=False)

    AwsClients(shared_cloud)["s3"].create_bucket(Bucket="results")
    with patch.dict(os.environ, {**variables, **hidden}):
        put = data("put", "vision-dev", str(tmp_path / "images"))
        assert put.exit_code == 0, put.output
        assert "data/images/one.txt" in data("list", "vision-dev").output
        got = data("get", "vision-dev", "data/images", "--to", str(tmp_path / "back"))
        assert got.exit_code == 0, got.output
    assert [path.read_text() for path in (tmp_path / "back").rglob("one.txt")] == ["one"]
