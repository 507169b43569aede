# SPDX-License-Identifier: Apache-2.0
"""The local cloud's `aws` plugin under the real engine, with a program written with pulumi_aws."""

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from components.s3 import Session
from localcloud.control import Cloud
from tests.support.local_team import LONGEST_SECONDS, summary
from trainyard.engine.obtain import local_stack_environment

pytestmark = pytest.mark.engine

PROJECT = Path(__file__).with_name("aws_project")
SETTINGS = {
    "port": 22,
    "days": 30,
    "digest": "1",
    "userData": base64.b64encode(b"#cloud-config\n{}\n").decode(),
    "nodes": ["main"],
}


class Stack:
    """The program beside this file on a local cloud."""

    def __init__(self, root: Path, cloud: Cloud) -> None:
        self.folder = root / "aws"
        shutil.copytree(PROJECT, self.folder)
        (self.folder / ".venv").symlink_to(sys.prefix)
        (self.folder / "train.py").write_text("print(1)\n")
        more = {"PULUMI_OPTION_COLOR": "never", "GRPC_VERBOSITY": "NONE"}
        self.env = local_stack_environment(root / "home") | dict(cloud.env) | more
        self.pulumi("stack", "init", "dev")
        self.pulumi("config", "set", "aws:region", "us-east-1")
        self.pulumi("config", "set", "--path", "aws:defaultTags.tags.owner", "vision")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["pulumi", *words, "--non-interactive"], cwd=self.folder, env=self.env, capture_output=True, text=True,
            timeout=LONGEST_SECONDS,
        )  # fmt: skip

    def pulumi(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, **settings: Any) -> None:
        (self.folder / "settings.json").write_text(json.dumps({**SETTINGS, **settings}))

    def rows(self) -> dict[str, dict[str, Any]]:
        """The state of each resource by the last word of its type and its name."""
        rows = json.loads(self.pulumi("stack", "export"))["deployment"]["resources"]
        named = {tuple(row["urn"].rsplit(":", 3)[1::2]): row for row in rows}
        assert len(named) == len(rows), "no resource stands in a state twice"
        return {f"{kind}::{name}": row for (kind, name), row in named.items()}

    def up(self, **settings: Any) -> dict[str, int]:
        self.write(**settings)
        return summary(self.pulumi("up", "--yes", "--skip-preview"))


@pytest.mark.torture
def test_a_cluster_is_created_changed_refreshed_and_destroyed(tmp_path: Path, cloud: Cloud) -> None:
    stack = Stack(tmp_path, cloud)
    made = stack.up()
    state = json.loads(stack.pulumi("stack", "export"))
    outputs = json.loads(stack.pulumi("stack", "output", "--json"))
    assert "hush-hush-hush" not in json.dumps(state)
    stack.pulumi("preview", "--expect-no-changes")

    (stack.folder / "train.py").write_text("print(2)\n")
    user_data = base64.b64encode(b"#cloud-config\n{hostname: other}\n").decode()
    changed = stack.up(port=3022, days=60, digest="2", userData=user_data, nodes=["main", "worker"])
    assert "replaced" not in changed
    assert changed["updated"] == 4  # the rule, the log group, the object and the template
    stack.pulumi("preview", "--expect-no-changes")
    with patch.dict(os.environ, cloud.env):
        session = Session.of({"region": "us-east-1"})
        storage, logs, machines = session.client("s3"), session.client("logs"), session.client("ec2")
        held = storage.get_object(Bucket=outputs["bucket"], Key="code/train.py")
        assert held["Body"].read() == b"print(2)\n"
        tags = {one["Key"]: one["Value"] for one in storage.get_bucket_tagging(Bucket=outputs["bucket"])["TagSet"]}
        assert tags["owner"] == "vision"

        group = next(one["logGroupName"] for one in logs.describe_log_groups()["logGroups"])
        logs.put_retention_policy(logGroupName=group, retentionInDays=7)
        assert "retentionInDays" in stack.pulumi("preview", "--refresh", "--diff")
        stack.pulumi("refresh", "--yes")
        assert stack.up(port=3022, days=60, digest="2", userData=user_data, nodes=["main", "worker"])["updated"] == 1

        # A replaced machine is another machine. A replaced setting of a bucket must not be deleted with the old
        # resource.
        main, block = (stack.rows()[name] for name in ("Instance::main", "BucketPublicAccessBlock::data"))
        stack.pulumi("up", "--yes", "--skip-preview", "--replace", main["urn"])
        assert stack.rows()["Instance::main"]["id"] != main["id"]
        # What was deleted for a replacement in this operation does not stand in the way of the new one.
        named = stack.rows()["Bucket::named"]["urn"]
        assert summary(stack.pulumi("up", "--yes", "--skip-preview", "--replace", named))["replaced"] == 2
        assert storage.get_bucket_versioning(Bucket="vision-named")["Status"] == "Enabled"
        refused = stack.run("up", "--yes", "--skip-preview", "--replace", block["urn"])
        assert "The old resource still exists" in refused.stdout
        assert summary(stack.pulumi("refresh", "--yes")).keys() == {"unchanged"}

        gone = summary(stack.pulumi("destroy", "--yes", "--skip-preview"))
        assert gone["deleted"] == made["created"] + 1
        live = machines.describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}])
        assert not live["Reservations"]
        assert not storage.list_buckets()["Buckets"]
