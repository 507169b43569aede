# SPDX-License-Identifier: Apache-2.0
"""The cloud-config of a machine."""

from __future__ import annotations

import ast
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from components.aws.node_setup import LARGEST, NodeSettings, user_data

ROOT = Path(__file__).parents[4]
SETTINGS = NodeSettings(
    region="us-east-1",
    bucket="vision-dev-runs",
    job="resnet",
    launcher=".trainyard/launcher/0123456789abcdef.tar.gz",
    code=".trainyard/code/resnet-0123456789abcdef.tar.gz",
    log_group="vision-dev",
    ssh_secret="arn:aws:secretsmanager:us-east-1:123456789012:secret:vision-dev-resnet-ssh-AbCdEf",
    image="123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/dt:1.0",
    release="1.15.1",
    efa_interfaces=4,
    stop_when_idle_minutes=30,
)


def written(text: str) -> dict[str, dict[str, str]]:
    return {row["path"]: row for row in yaml.safe_load(text)["write_files"]}


def test_it_keeps_below_the_limit_of_ec2_whatever_the_number_of_nodes() -> None:
    longest = replace(SETTINGS, bucket="b" * 63, job="j" * 63, log_group="g" * 128)
    assert len(user_data(longest).encode()) <= LARGEST
    with pytest.raises(ValueError, match="use shorter names"):
        user_data(replace(SETTINGS, log_group="g" * 4096))


def test_it_brings_the_settings_and_fetch_without_its_docstrings() -> None:
    files = written(user_data(SETTINGS))
    assert json.loads(files["/etc/trainyard/node.json"]["content"]) == {
        "region": "us-east-1",
        "bucket": "vision-dev-runs",
        "job": "resnet",
        "launcher": ".trainyard/launcher/0123456789abcdef.tar.gz",
        "code": ".trainyard/code/resnet-0123456789abcdef.tar.gz",
        "logGroup": "vision-dev",
        "sshSecret": SETTINGS.ssh_secret,
        "sshPort": 3022,
        "image": SETTINGS.image,
        "release": "1.15.1",
        "hostNic": "libfabric",
        "efaInterfaces": 4,
        "stopWhenIdleMinutes": 30,
    }
    brought = ast.parse(files["/opt/trainyard/bin/fetch.py"]["content"])
    assert ast.dump(brought) == ast.dump(without_docstrings((ROOT / "launcher/aws_dl1/fetch.py").read_text("utf-8")))


def without_docstrings(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree


def test_a_hostile_name_stays_a_value() -> None:
    nasty = 'x"\nruncmd: [[touch, /tmp/x]]\n$node_json ${fetch} \u2028'
    text = user_data(replace(SETTINGS, log_group=nasty))
    assert json.loads(written(text)["/etc/trainyard/node.json"]["content"])["logGroup"] == nasty
    assert yaml.safe_load(text)["runcmd"] == yaml.safe_load(user_data(SETTINGS))["runcmd"]


def test_the_shell_script_of_the_machine_is_one(tmp_path: Path) -> None:
    script = tmp_path / "trainyard-node"
    script.write_text(written(user_data(SETTINGS))["/opt/trainyard/bin/trainyard-node"]["content"], "utf-8")
    subprocess.run(["sh", "-n", str(script)], check=True)


def test_the_ssh_key_is_never_in_user_data_only_its_secret_s_name() -> None:
    text = user_data(SETTINGS)
    assert "PRIVATE KEY" not in text
    assert SETTINGS.ssh_secret in text
