# SPDX-License-Identifier: Apache-2.0
"""Every part reports the same version. For the policy pack see test_policies.py."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from importlib.metadata import version
from pathlib import Path

import grpc
from click.testing import CliRunner
from google.protobuf import empty_pb2

from catalog.version import VERSION
from localcloud.control import MARKER_PATH, Cloud
from provider.base.wire import provider_pb2, provider_pb2_grpc
from tests.support.waiting import LONGEST_SECONDS
from trainyard.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_says_the_version_that_is_installed() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"trainyard {VERSION}\n"
    assert version("trainyard") == VERSION


def test_sarif_states_the_version(tmp_path: Path) -> None:
    said = CliRunner().invoke(main, ["check", "--format", "sarif", str(ROOT / "stacks" / "Pulumi.local.yaml")]).stdout
    assert json.loads(said)["runs"][0]["tool"]["driver"]["semanticVersion"] == VERSION


def test_the_provider_reports_its_version_to_the_engine() -> None:
    with subprocess.Popen([sys.executable, "provider"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as provider:
        try:
            assert provider.stdout is not None
            with grpc.insecure_channel(f"127.0.0.1:{int(provider.stdout.readline())}") as channel:
                stub = provider_pb2_grpc.ResourceProviderStub(channel)
                info = stub.GetPluginInfo(empty_pb2.Empty(), timeout=LONGEST_SECONDS)
                schema = stub.GetSchema(provider_pb2.GetSchemaRequest(), timeout=LONGEST_SECONDS).schema
        finally:
            provider.terminate()
    assert (info.version, json.loads(schema)["version"]) == (VERSION, VERSION)


def test_the_local_cloud_reports_its_version(shared_cloud: Cloud) -> None:
    with urllib.request.urlopen(f"{shared_cloud.endpoint}{MARKER_PATH}", timeout=LONGEST_SECONDS) as answer:
        marker = json.load(answer)
    assert marker["version"] == VERSION
    assert (marker["awsAccount"], marker["openpaiUri"]) == ("123456789012", shared_cloud.endpoint)
