# SPDX-License-Identifier: Apache-2.0
"""Conversion between a run and a job of the cluster, without a cluster."""

import base64
import json
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from components.openpai.client.cluster_session import user_of_token
from components.openpai.client.inputs import INPUTS
from components.openpai.client.jobs import RELEASED, Job, RunId, inputs_of_job, job_name, job_of
from components.openpai.protocol import text_of
from components.platform.runs import RunSpec, fingerprint_of_run, run_spec
from components.platform.values import Properties

ROLE = {
    "instances": 2,
    "dockerImage": "image",
    "resourcePerInstance": {"cpu": 1, "memoryMB": 512, "gpu": 0},
    "commands": ["python train.py"],
}
PROTOCOL: dict[str, Any] = {
    "protocolVersion": 2,
    "name": "replaced",
    "type": "job",
    "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3.11"}],
    "secrets": {"key": "1e3"},
    "taskRoles": {"worker": ROLE},
    "defaults": {"virtualCluster": "gold"},
    "extras": {"gangAllocation": True, "trainyard": {"folder": "file:///mnt/results/a"}},
}
PLAIN: Properties = {
    "platform": "openpai",
    "cluster": {"uri": "https://pai", "user": "anna", "virtualCluster": "gold"},
    "token": "t",
    "displayName": "vision-dev/train/first",
    "tags": {"stack": "vision-dev", "job": "train", "run": "first"},
    "nodes": [{"name": f"worker-{rank}", "role": "worker", "rank": rank} for rank in range(2)],
    "protocol": PROTOCOL,
    "until": "started",
    "attempt": 3,
}


def _spec(**changed: Any) -> RunSpec:
    return run_spec("urn", {**PLAIN, **changed})


def _job(spec: RunSpec, *marks: str) -> Job:
    job = Job.read("anna", "j", text_of(job_of(spec, "j")), list(marks))
    assert job is not None
    return job


def test_a_job_says_how_long_it_may_take_to_those_who_read_it_later() -> None:
    job = _job(_spec(maximumRuntimeMinutes=120))
    assert job.maximum_minutes == 120
    assert "maximumRuntimeMinutes" not in str(job.protocol), "it is no part of what the stack described"
    assert _job(_spec()).maximum_minutes is None


def test_every_task_is_told_what_the_run_expects_before_it_starts_and_no_copy_of_the_job_has_it() -> None:
    expects = {"version": 1, "why": "Ray's <% $parameters.x %>"}
    job = _job(_spec(expects=expects))
    *_, told, last = job.content["taskRoles"]["worker"]["commands"]
    assert [last] == ROLE["commands"]
    assert "<%" not in told
    done = subprocess.run(
        ["bash", "-c", f'{told}\nprintf %s "$TRAINYARD_EXPECTS"'], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == expects
    assert job.protocol == _job(_spec()).protocol


def test_names_are_the_clusters_and_say_which_start_it_is() -> None:
    assert job_name("a b/ü", "0123456789", 1) == "a-b--01234567"
    assert job_name("a", "try/first/0123456789", 3) == "a-01234567-3"
    assert len(job_name("a" * 400, "0123456789", 12)) == 255


def test_an_id_names_user_job_role_and_task() -> None:
    text = "openpai/a.b~train-0123abcd-2/worker/11"
    assert RunId.parse(text) == ("a.b", "train-0123abcd-2", "worker", 11)
    assert str(RunId.parse(text)) == text
    assert RunId.parse("aws-dl1/b/j/00000001/main-0") is None


def test_a_job_says_which_run_it_is() -> None:
    spec = _spec()
    job = _job(spec)
    assert (job.fingerprint, job.display_name, job.attempt) == (spec.fingerprint, spec.display_name, 3)
    assert (job.tags, job.folder) == (PLAIN["tags"], "file:///mnt/results/a")
    assert [job.run_id(node) for node in job.nodes] == ["openpai/anna~j/worker/0", "openpai/anna~j/worker/1"]
    described = inputs_of_job(job, "https://pai")
    assert {key: described[key] for key in PLAIN.keys() & described.keys() - {"protocol"}} == {
        key: PLAIN[key] for key in described.keys() - {"protocol"}
    }
    assert described["protocol"] == {key: value for key, value in PROTOCOL.items() if key != "name"}


def test_a_job_is_read_from_json_too_as_clusters_answer() -> None:
    read = Job.read("anna", "j", json.dumps(job_of(_spec(), "j")), None)
    assert read is not None
    assert read.fingerprint == _spec().fingerprint


@pytest.mark.parametrize(
    "text", ["", "- a", "a: [", "{}", "extras: {trainyard: 1}", "extras: {trainyard: {version: 9}}"]
)
def test_a_job_of_others_is_no_run(text: str) -> None:
    assert Job.read("anna", "j", text, []) is None


def test_what_changes_of_a_runs_names_is_in_tags() -> None:
    spec = _spec()
    renamed = replace(spec, display_name="a, b", tags={"stack": "vision-dev", "run": "second"}, fingerprint="f")
    marks = _job(spec).labels(renamed)
    assert set(marks) == {"displayName", "tag.job", "tag.run", "fingerprint"}
    assert not any("," in mark for mark in marks.values())
    job = _job(spec, RELEASED, "somebody's", *marks.values())
    assert (job.display_name, job.tags, job.fingerprint) == ("a, b", dict(renamed.tags), "f")
    assert job.released
    assert job.changing_marks == marks
    assert job.labels(spec) == {}, "the old name back needs no tag"


def test_a_token_may_change_while_a_run_lives_and_the_job_may_not() -> None:
    before = fingerprint_of_run("urn", PLAIN)
    assert fingerprint_of_run("urn", {**PLAIN, "token": "other", "certificate": "ca.pem"}) == before
    assert fingerprint_of_run("urn", {**PLAIN, "protocol": {**PROTOCOL, "type": "other"}}) != before
    assert fingerprint_of_run("urn", {**PLAIN, "cluster": {**PLAIN["cluster"], "user": "bert"}}) != before


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"cluster": "here"}, "cluster"),
        ({"cluster": {**PLAIN["cluster"], "user": ""}}, "cluster.user"),
        ({"cluster": {**PLAIN["cluster"], "zone": "z"}}, "cluster.zone"),
        ({"cluster": {**PLAIN["cluster"], "uri": "pai.example"}}, "cluster.uri"),
        ({"protocol": {"taskRoles": []}}, "protocol"),
        ({"nodes": [{"name": "ps-0", "role": "ps"}]}, "nodes[0].role"),
    ],
)
def test_an_invalid_input_of_an_openpai_run_is_named(changed: Properties, path: str) -> None:
    assert [failure.property for failure in INPUTS.failures({**PLAIN, **changed})] == [path]


def test_the_user_of_a_token_is_read_where_the_token_says_it() -> None:
    content = base64.urlsafe_b64encode(b'{"username": "anna", "application": true}').decode().rstrip("=")
    assert user_of_token(f"header.{content}.signature") == "anna"
    assert [user_of_token(text) for text in ("", "a.b.c", "a.bnVsbA.c", "opaque")] == [""] * 4
