# SPDX-License-Identifier: Apache-2.0
"""The protocol of OpenPAI: invalid jobs, and how a cluster reads a job's text and commands."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from components.openpai.protocol import (
    LONGEST_TEXT,
    NotAJobError,
    parse_job_text,
    protocol_problems,
    task_command,
    text_of,
    with_secrets,
)
from tests.support.openpai_jobs import as_shown_by_a_cluster

IMAGE = {
    "type": "dockerimage",
    "name": "image",
    "uri": "images.example.com/cifar:1",
    "auth": {"username": "vision", "password": "<% $secrets.password %>", "registryuri": "images.example.com"},
}
JOB: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "cifar",
    "type": "job",
    "jobRetryCount": 1,
    "prerequisites": [IMAGE, {"type": "data", "name": "pictures", "uri": ["https://data.example.com/pictures"]}],
    "parameters": {"epochs": 2, "model": "resnet"},
    "secrets": {"password": "c2VjcmV0"},
    "taskRoles": {
        "worker": {
            "instances": 2,
            "completion": {"minFailedInstances": 1, "minSucceededInstances": -1},
            "taskRetryCount": 0,
            "dockerImage": "image",
            "data": "pictures",
            "resourcePerInstance": {"cpu": 8, "memoryMB": 16384, "gpu": 2, "ports": {"SynPort": 1}},
            "commands": [" echo <% $data.uri[0] %> ", "python train.py --epochs <% $parameters.epochs %>"],
        }
    },
    "deployments": [{"name": "here", "taskRoles": {"worker": {"preCommands": ["echo before"]}}}],
    "defaults": {"virtualCluster": "default", "deployment": "here"},
    "extras": {
        "gangAllocation": False,
        "storages": [{"name": "shared", "mountPath": "/mnt/shared"}],
        "hivedScheduler": {"taskRoles": {"worker": {"skuNum": 2, "skuType": "V100"}}},
        "com.microsoft.pai.runtimeplugin": [{"plugin": "ssh", "parameters": {"jobssh": True}, "taskroles": ["worker"]}],
    },
}
WORKER = ("taskRoles", "worker")
# A change of the job, and words of the expected problem. `...` removes the value.
REFUSED: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("protocolVersion",), 1, "protocolVersion"),
    (("name",), "two words", "does not match"),
    (("name",), "line\n", "does not match"),
    (("name",), "x" * 256, "longer than 255"),
    (("type",), ..., "type"),
    (("prerequisites",), [], "is empty"),
    (("prerequisites", 0, "uri"), ..., "uri"),
    (("prerequisites", 0, "unknown"), 1, "unknown"),
    (("prerequisites", 1, "uri"), "https://data.example.com", "is not of type array"),
    (("prerequisites", 1, "type"), "dataset", "dataset"),
    (("prerequisites", 0, "auth", "password"), "secret", "refer to a secret"),
    (("prerequisites", 0, "auth", "password"), "<% $secrets.other %>", "nothing is called `$secrets.other`"),
    (("prerequisites", 0, "auth", "registryuri"), ..., "ends it with 254: `auth` has no `registryuri`"),
    (("prerequisites", 0), {**IMAGE, "uri": "team/cifar:1"}, "254: it calls Docker Hub without the password"),
    (("prerequisites", 0, "uri"), "team/cifar:1+2", "in the tag `1+2`"),
    (("secrets",), ..., "nothing is called `$secrets.password`"),
    (("jobRetryCount",), -1, "counts from 0"),
    (("jobRetryCount",), -2, "again even after success, on paid GPUs"),
    ((*WORKER, "taskRetryCount"), -2, "again even after success, on paid GPUs"),
    ((*WORKER, "taskRetryCount"), -3, "is -3, and retries are counted from 0"),
    ((*WORKER, "instances"), 0, "less than"),
    ((*WORKER, "completion", "minFailedInstances"), 0, "give -1 or at least 1"),
    ((*WORKER, "completion", "minSucceededInstances"), -2, "less than"),
    ((*WORKER, "completion", "minCompletedInstances"), 1, "minCompletedInstances"),
    ((*WORKER, "dockerImage"), "pictures", "no prerequisite of type dockerimage"),
    ((*WORKER, "data"), "sounds", "no prerequisite of type data"),
    ((*WORKER, "prerequisites"), ["sounds"], "no prerequisite has the name `sounds`"),
    ((*WORKER, "commands"), [], "is empty"),
    ((*WORKER, "commands"), ["<% $parameters.rate %>"], "nothing is called `$parameters.rate`"),
    ((*WORKER, "commands"), ["<%! $parameters.rate %>"], "begins a reference"),
    ((*WORKER, "commands"), ["<%# $parameters.rate %>"], "the section `$parameters.rate` is not closed"),
    ((*WORKER, "commands"), ["<% $parameters.rate"], "is not closed by `%>`"),
    ((*WORKER, "commands"), ["x" * 131_072], "command has at most"),
    ((*WORKER, "resourcePerInstance", "gpu"), ..., "gpu"),
    ((*WORKER, "resourcePerInstance", "ports"), {"syn-port": 1}, "does not match"),
    (("taskRoles", "work-er"), {}, "does not match"),
    (("taskRoles", "Wor_ker"), JOB["taskRoles"]["worker"], "the controller calls 2 task roles `worker`"),
    (("description",), "x" * LONGEST_TEXT, "bytes as text"),
    (("defaults", "deployment"), "there", "no deployment has the name `there`"),
    (("deployments", 0, "taskRoles"), {"ps": {"preCommands": ["true"]}}, "no task role has the name `ps`"),
    (("extras", "storages"), [{"name": "a"}, {"name": "b", "mountPath": "/mnt/a"}], "`/mnt/a` occurs 2 times"),
    (("extras", "hivedScheduler", "taskRoles", "ps"), {}, "no task role has the name `ps`"),
    (("extras", "hivedScheduler", "taskRoles", "worker", "pinnedCellId"), "cell", "both skuType and pinnedCellId"),
    (("extras", "com.microsoft.pai.runtimeplugin", 0, "taskroles"), ["ps"], "no task role has the name `ps`"),
    (("extras", "com.microsoft.pai.runtimeplugin", 0, "plugin"), "../ssh", "does not match"),
]


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    job = copy.deepcopy(JOB)
    place: Any = job
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return job


def test_a_whole_job_is_valid() -> None:
    assert protocol_problems(JOB) == []


@pytest.mark.parametrize(("path", "value", "words"), REFUSED)
def test_what_the_protocol_refuses(path: tuple[str | int, ...], value: Any, words: str) -> None:
    assert any(words in str(problem) for problem in protocol_problems(changed(path, value)))


def test_a_problem_shows_no_secret() -> None:
    job = changed(("secrets",), ["hunter2"])
    assert protocol_problems(job)
    assert "hunter2" not in " ".join(map(str, protocol_problems(job)))


def test_text_and_job_are_the_same() -> None:
    job = changed(("parameters",), {"text": "1e3", "more": "a: b\n#c <% d", "date": "2026-11-22", "number": 1e3})
    assert parse_job_text(text_of(job)) == job


def test_a_cluster_finds_the_secrets_in_the_text() -> None:
    text = as_shown_by_a_cluster(text_of(changed(("secrets", "password"), "taskRoles: x\nname: y")))
    assert parse_job_text(text) == {**JOB, "secrets": "******"}


def test_a_secret_that_the_runtime_would_change_is_a_problem_of_a_command() -> None:
    job = changed((*WORKER, "commands"), ["login <% $secrets.password %>"])
    assert protocol_problems(job) == []
    assert "`&amp;`" in str(protocol_problems({**job, "secrets": {"password": "a&b"}})[0])


@pytest.mark.parametrize("text", ["[1, 2]", "{a: ", "", "a: !!python/object:os.system x", "[" * 5000])
def test_a_text_that_is_not_a_job_is_refused(text: str) -> None:
    with pytest.raises(NotAJobError, match="this is not"):
        parse_job_text(text)


def test_a_role_has_one_command() -> None:
    job = changed(
        (*WORKER, "commands"), ["echo <% $data.uri[0] %> ", "login <% $secrets.password %> <%$parameters.epochs%>"]
    )
    command = task_command(job, "worker")
    assert command == "echo before\necho https://data.example.com/pictures\nlogin <% $secrets.password %> 2"
    assert with_secrets(command, job["secrets"]).endswith("login c2VjcmV0 2")
