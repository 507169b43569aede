# SPDX-License-Identifier: Apache-2.0
"""Retry and completion policies: from the stack file to the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from components.openpai.plan import ENDLESS
from tests.support.openpai_jobs import job_of, judged_stack, planned

SERVERS = {"framework": "tensorflow", "strategy": "parameter-server"}


def role(count: int = 0, replicas: int = 2, **completion: int) -> dict[str, Any]:
    return {"replicas": replicas, "retry": {"count": count}, "completion": completion}


# Job -> jobRetryCount, gangAllocation, and of each role: taskRetryCount, minFailed, minSucceeded.
POLICIES: dict[str, tuple[dict[str, Any], int, bool, dict[str, tuple[int, int, int]]]] = {
    "nothing is said": ({}, 0, True, {"main": (0, 1, -1), "worker": (0, 1, -1)}),
    "a gang is tried again as a whole, as often as its most patient role": (
        {"roles": {"main": role(1, 1), "worker": role(3)}}, 3, True, {"main": (0, 1, -1), "worker": (0, 1, -1)},
    ),
    "without limit": ({"roles": {"main": role(-1, 1)}}, ENDLESS, True, {"main": (0, 1, -1)}),
    "tasks that need no other are tried again alone": (
        {**SERVERS, "roles": {"main": role(0, 1), "worker": role(2), "ps": role(-1, 1)}},
        0, False, {"main": (0, 1, -1), "worker": (2, 1, -1), "ps": (ENDLESS, 1, -1)},
    ),
    "without retries OpenPAI starts all together": (
        {**SERVERS, "roles": {"main": role(0, 1), "worker": role(), "ps": role(0, 1)}},
        0, True, {"main": (0, 1, -1), "worker": (0, 1, -1), "ps": (0, 1, -1)},
    ),
    "a plain command's tasks are tried again together, and OpenPAI ends its servers": (
        {**SERVERS, "start": "plain", "roles": {"main": role(1, 1), "worker": role(2), "ps": role(0, 1)}},
        2, True, {"main": (0, 1, 1), "worker": (0, 1, -1), "ps": (0, 1, -1)},
    ),
    "completion is the team's": (
        {"roles": {"main": role(0, 1), "worker": role(0, 3, minFailed=2, minSucceeded=2)}},
        0, True, {"main": (0, 1, -1), "worker": (0, 2, 2)},
    ),
    "failures never end it": (
        {"roles": {"main": role(0, 1), "worker": role(0, 3, minFailed=-1, minSucceeded=-1)}},
        0, True, {"main": (0, 1, -1), "worker": (0, -1, -1)},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "count", "gang", "roles"), POLICIES.values(), ids=POLICIES.keys())
def test_retries_and_completion(
    spec: dict[str, Any], count: int, gang: bool, roles: dict[str, tuple[int, int, int]], tmp_path: Path
) -> None:
    job = job_of(tmp_path, spec)
    assert job["jobRetryCount"] == count
    assert job["extras"].get("gangAllocation", True) is gang
    made = {
        name: (
            row["taskRetryCount"],
            row["completion"]["minFailedInstances"],
            row["completion"]["minSucceededInstances"],
        )
        for name, row in job["taskRoles"].items()
    }
    assert made == roles


def test_the_launcher_never_tries_again_itself(tmp_path: Path) -> None:
    plan = planned(tmp_path, {"roles": {"main": role(2, 1), "worker": role(3)}})
    for run in plan.jobs["train"].runs.values():
        assert {node.launch["retry"]["count"] for node in run.nodes} == {0}


def test_again_after_success_is_refused_with_its_reason(tmp_path: Path) -> None:
    found = judged_stack(tmp_path, {"roles": {"main": role(-2, 1)}}).findings
    (one,) = [finding for finding in found if finding.severity == "error"]
    assert one.code == "TY881"
    assert "even after success, on paid GPUs" in one.message


def test_what_a_task_gets_and_where_it_runs(tmp_path: Path) -> None:
    job = job_of(
        tmp_path,
        {
            "imageAuth": {"user": "puller", "password": {"secure": "pass'word"}},
            "plugins": [{"plugin": "ssh", "parameters": {"jobssh": True}, "taskroles": ["worker"]}],
            "shape": "v100",
        },
        skus={"v100": {"gpus": 4, "cpus": 8, "memoryGb": 1.5, "sku": "V100"}},
        storage={"name": "vision-nfs", "mount": "/data", "folder": "runs"},
        cluster={"uri": "https://openpai.example.com", "user": "vision-bot", "virtualCluster": "vision"},
    )
    assert job["defaults"] == {"virtualCluster": "vision"}
    assert job["prerequisites"] == [
        {
            "type": "dockerimage",
            "name": "image",
            "uri": "registry.example.com/train:1.0",
            "auth": {
                "username": "puller",
                "password": "<% $secrets.image-password %>",
                "registryuri": "registry.example.com",
            },
        }
    ]
    assert job["secrets"] == {"image-password": "pass'word"}
    assert job["taskRoles"]["main"]["resourcePerInstance"] == {
        "cpu": 8, "memoryMB": 1536, "gpu": 4, "ports": {"rendezvous": 1},
    }  # fmt: skip
    assert "ports" not in job["taskRoles"]["worker"]["resourcePerInstance"]
    assert job["extras"]["storages"] == [{"name": "vision-nfs", "mountPath": "/data"}]
    assert job["extras"]["hivedScheduler"]["taskRoles"]["worker"] == {"skuType": "V100", "skuNum": 4}
    assert job["extras"]["trainyard"] == {"folder": "file:///data/runs/train/base/1", "framework": "pytorch"}
    assert job["extras"]["com.microsoft.pai.runtimeplugin"] == [
        {"plugin": "ssh", "parameters": {"jobssh": True}, "failurePolicy": "fail", "taskroles": ["worker"]}
    ]


def test_prerequisites_are_named_by_every_role(tmp_path: Path) -> None:
    places = ["https://a.example.com", "https://b.example.com"]
    job = job_of(
        tmp_path,
        {
            "prerequisites": [
                {"type": "data", "name": "digits", "uri": places, "before": ["fetch <% $data.uri[1] %>"]},
                {"type": "data", "name": "labels", "uri": places[:1], "after": ["upload"]},
                {"type": "script", "name": "tools", "uri": ["https://c.example.com"]},
            ]
        },
    )
    plugin = "com.microsoft.pai.runtimeplugin.cmd"
    before = [{"event": "taskStarts", "commands": ["fetch <% $data.uri[1] %>"]}]
    after = [{"event": "taskSucceeds", "commands": ["upload"]}]
    assert job["prerequisites"][1:] == [
        {"type": "data", "name": "digits", "uri": places, "plugin": plugin, "callbacks": before},
        {"type": "data", "name": "labels", "uri": places[:1], "plugin": plugin, "callbacks": after},
        {"type": "script", "name": "tools", "uri": "https://c.example.com"},
    ]
    for role in job["taskRoles"].values():
        assert (role["data"], role["script"], "output" in role) == ("digits", "tools", False)
        assert role["prerequisites"] == ["digits", "labels", "tools"]


def test_a_bucket_is_reached_by_keys_that_are_secrets(tmp_path: Path) -> None:
    bucket = {
        "existing": "vision-data", "region": "us-east-1", "endpoint": "https://s3.example.com",
        "accessKey": {"secure": "AKIA"}, "secretKey": {"secure": "hidden"},
    }  # fmt: skip
    job = job_of(tmp_path, {}, storage=None, bucket=bucket)
    assert job["extras"]["trainyard"] == {"folder": "s3://vision-data/train/base/1", "framework": "pytorch"}
    assert set(job["secrets"]) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    text = "\n".join(job["taskRoles"]["main"]["commands"])
    assert "export AWS_ENDPOINT_URL_S3=https://s3.example.com" in text
    assert "hidden" not in text
