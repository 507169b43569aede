# SPDX-License-Identifier: Apache-2.0
"""Hostile texts of jobs: the local OpenPAI responds with the problem."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from components.openpai.protocol import protocol_problems, text_of
from localcloud.openpai.attempts import MOST_PORTS, assigned_ports
from localcloud.openpai.job_store import JobRow, JobStore
from localcloud.openpai.submitting import parse_and_mask_job, parse_valid_job
from localcloud.server.api_errors import ApiError

_ROLE = {"dockerImage": "image", "commands": ["true"], "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}}
_JOB = {
    "protocolVersion": 2,
    "name": "hello",
    "type": "job",
    "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3.11"}],
}
_OF_MORE = "prerequisites.0.auth.more: has no value that OpenPAI can read"
_NESTED = [f"a{index}: &a{index} [{','.join([f'*a{index - 1}'] * 10)}]" for index in range(1, 9)]

_MERGED = [f"a{index}: &a{index} {{<<: [*a{index - 1}, *a{index - 1}]}}" for index in range(1, 60)]


def _job(**resources: Any) -> dict[str, Any]:
    each = {**_ROLE["resourcePerInstance"], **resources}  # type: ignore[dict-item]
    return {**_JOB, "taskRoles": {"worker": {**_ROLE, "resourcePerInstance": each}}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a YAML mapping"),
        ("[1, 2]", "a YAML mapping"),
        ("x: !!binary aGVsbG8=", "type bytes"),
        ("a: &a [*a]", "repeats itself"),
        ("\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *_NESTED]), "repeats itself"),
        (f"a: &a {'x' * 40_000}\nb: [{','.join(['*a'] * 9000)}]", "repeats itself"),
        (f"a: &a {{{'x' * 1000}: 1}}\nb: [{','.join(['*a'] * 9000)}]", "repeats itself"),
        ("x: " + "1:" * 20_000 + "1", "too large"),
        ("x: .nan", "or not a number"),
        ("x: 1.0e+999", "too large"),
        (json.dumps(_job(ports={"data": 900, "more": 101})), "1000 at the most"),
    ],
)
def test_a_hostile_text_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ApiError, match=reason) as refusal:
        parse_valid_job(text)
    assert (refusal.value.status, refusal.value.code) == (400, "InvalidProtocolError")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not YAML"),
        ("a: " + "[" * 2000, "not YAML"),
        ("x: !!python/object:os.system {}", "not YAML"),
        ("\n".join(["a0: &a0 {x: 1}", *_MERGED]), "repeats itself"),
        ("a: &a {<<: *a}", "not YAML"),
        (json.dumps(_job() | {"taskRoles": None}), "taskRoles: is not of type object"),
    ],
)
def test_failures_of_the_rest_server_itself_have_no_code(text: str, reason: str) -> None:
    with pytest.raises(ApiError, match=reason) as refusal:
        parse_valid_job(text)
    assert (refusal.value.status, refusal.value.code) == (500, "")


def test_unknown_values_in_auth_cause_no_traceback() -> None:
    """OpenPAI fails at a number there, and takes another text."""
    registry = {"registryuri": "https://index.docker.io/v1/"}
    auth = {"username": "ann", "password": "<% $secrets.word %>", "more": 1, **registry}
    for more, accepted in ((1, False), ("word", True), (None, True)):
        image = {"type": "dockerimage", "name": "image", "uri": "python:3.11", "auth": {**auth, "more": more}}
        job = {**_job(), "prerequisites": [image], "secrets": {"word": "sesame"}}
        assert [str(each) for each in protocol_problems(job)] == ([] if accepted else [_OF_MORE])
        if accepted:
            assert parse_valid_job(json.dumps(job)) == job


@pytest.mark.parametrize(
    "secrets",
    [
        "secrets:\n  key: sesame",
        '"secrets": {key: sesame}',
        "secrets : {key: sesame}",
        "'secrets':\n  key: sesame",
        "? secrets\n: key: sesame",
        "? [secrets]\n: key: sesame",
        '"\\x73ecrets": {key: sesame}',
        "!!str secrets: {key: sesame}",
        "<<: {secrets: {key: sesame}}",
        "secrets:\n  key: |\n    one\n\n    sesame",
    ],
)
def test_no_way_of_writing_a_job_shows_its_secrets(secrets: str) -> None:
    text = f"{secrets}\n{text_of(_job())}"
    protocol, shown = parse_and_mask_job(text)
    assert "sesame" in protocol["secrets"]["key"]
    assert "sesame" not in shown
    assert json.loads(shown) == {**_job(), "secrets": "******"}


def test_a_job_in_json_does_not_show_its_secrets() -> None:
    job = {**_job(), "secrets": {"key": "sesame"}}
    for text in (json.dumps(job), json.dumps(job, indent=1)):
        assert json.loads(parse_and_mask_job(text)[1]) == {**job, "secrets": "******"}


@pytest.mark.parametrize(
    ("secrets", "description"),
    [
        ("secrets:\n  key: &key sesame", "*key"),
        ("parameters: {x: &key sesame}\nsecrets: {key: *key}", "fine"),
        ("parameters: &all {secrets: {key: sesame}}\n<<: *all", "fine"),
        ("parameters: &all {key: sesame}\nsecrets: {<<: *all}", "fine"),
    ],
)
def test_a_job_that_is_invalid_without_its_secrets_is_refused(secrets: str, description: str) -> None:
    text = text_of({**_job(), "description": "word"}).replace('"word"', description)
    with pytest.raises(ApiError, match="without its secrets"):
        parse_and_mask_job(f"{secrets}\n{text}")


def test_a_task_gets_as_many_ports_as_it_asks_for_and_no_port_twice() -> None:
    job = parse_valid_job(json.dumps(_job(ports={"data": MOST_PORTS - 1, "http": 0})))
    ports = assigned_ports(job, "worker", "an attempt")
    assert {label: len(numbers) for label, numbers in ports.items()} == {"data": 999, "http": 1, "ssh": 1}
    numbers = [number for each in ports.values() for number in each]
    assert len(set(numbers)) == len(numbers)
    assert assigned_ports(job, "worker", "an attempt") == ports
    assert assigned_ports(job, "worker", "another") != ports


def test_secrets_that_an_earlier_release_stored_are_masked(tmp_path: Path) -> None:
    job = {**_job(), "secrets": {"key": "sesame"}}
    with closing(JobStore(tmp_path / "state.sqlite3")) as store:
        store.add(JobRow("user~hello", "user", "hello", "1", "default", 1.0), json.dumps(job), job)
        store.add(JobRow("user~other", "user", "other", "2", "default", 1.0), "secrets: no JSON", job)
    with closing(JobStore(tmp_path / "state.sqlite3")) as store:
        assert json.loads(store.text("user~hello", "config")) == {**job, "secrets": "******"}
        assert json.loads(store.text("user~hello", "protocol")) == job
