# SPDX-License-Identifier: Apache-2.0
"""The local OpenPAI accepts and refuses the same requests as OpenPAI's own REST server.

`recorded_of_openpai.json` has the answers of its source, v1.8.0, run by node with the packages that its yarn.lock pins
(ajv 6.10, js-yaml 3.13, mustache 2.3): the middleware of a submission with the scheduler hived, then `put` of
models/v2/job/k8s.js, for a user with the virtual cluster `default` and the storage `shared`. Its database, Kubernetes
and the scheduler were stubs. Each change is made to one job that it takes.
"""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from components.openpai.client.storages import storages_folder
from components.openpai.protocol import NotYamlError, parse_job_text, protocol_refusals, task_command
from components.openpai.protocol.text import Moment
from localcloud.openpai.accounts import find_person
from localcloud.openpai.storages import DEFAULT
from localcloud.openpai.submitting import parse_and_mask_job, require_allowed_policy
from localcloud.server.api_errors import ApiError

RECORDED = json.loads(Path(__file__).with_name("recorded_of_openpai.json").read_text(encoding="utf-8"))
# Where the local cluster differs, and why.
DIFFERS = {
    ("taskRoles", "[]"): "a list without roles is refused with 500, and not for what else refers to the roles",
    ("taskRoles.worker.resourcePerInstance.ports.SynPort", "2000"): "a task gets at most 1000 ports",
}
KINDS = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (storages_folder(tmp_path) / DEFAULT).mkdir(parents=True)
    return tmp_path


def _changed(path: list[str | int], values: list[Any]) -> dict[str, Any]:
    """The job with another value at the path, or without it."""
    job: dict[str, Any] = copy.deepcopy(RECORDED["job"])
    place: Any = job
    for step in path[:-1]:
        place = place[step]
    if isinstance(place, list):
        at = int(path[-1])
        place[at : at + 1] = [_copied(value) for value in values]
    elif values:
        place[path[-1]] = _copied(values[0])
    else:
        place.pop(path[-1], None)
    return job


def _copied(value: Any) -> Any:
    """`$copy` names a part of the job."""
    if not isinstance(value, dict) or "$copy" not in value:
        return value
    part: Any = RECORDED["job"]
    for step in value["$copy"]:
        part = part[step]
    return copy.deepcopy(part)


def _answer(home: Path, job: Any) -> str:
    user = find_person("user")
    assert user
    try:
        protocol, _ = parse_and_mask_job(json.dumps(job))
        require_allowed_policy(home, user, protocol)
    except ApiError as error:
        return f"{error.status} {error.code}".strip()
    return "202"


def _rows(row: dict[str, Any]) -> list[tuple[list[Any], str]]:
    """Each value at the row's path, with the expected response. Without a value, the key is missing."""
    removed: list[tuple[list[Any], str]] = [([], row["removed"])] if "removed" in row else []
    return removed + [([value], answer) for answer, values in row.items() if answer[0].isdigit() for value in values]


@pytest.mark.parametrize("row", RECORDED["changes"], ids=lambda row: ".".join(map(str, row["path"])))
def test_a_job_gets_the_recorded_response_of_openpai(row: dict[str, Any], home: Path) -> None:
    place = ".".join(map(str, row["path"]))
    differing = [
        (values, answer, given)
        for values, answer in _rows(row)
        if (place, json.dumps(values[0]) if values else "") not in DIFFERS
        and (given := _answer(home, _changed(row["path"], values))) != answer
    ]
    assert differing == []


@pytest.mark.parametrize(("text", "kind", "value"), [(*row, None)[:3] for row in RECORDED["scalars"]])
def test_a_plain_yaml_scalar_is_parsed_as_by_js_yaml(text: str, kind: str, value: Any) -> None:
    if kind == "error":
        with pytest.raises(NotYamlError):
            parse_job_text(f"x: {text}")
        return
    read = parse_job_text(f"x: {text}")["x"]
    assert ("date" if isinstance(read, Moment) else KINDS.get(type(read), "null")) == kind
    if isinstance(read, float) and not math.isfinite(read):
        read = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(read, "NaN")
    assert read == value


@pytest.mark.parametrize(("text", "command"), RECORDED["templates"])
def test_a_command_is_filled_in_as_openpai_does(text: str, command: str | None) -> None:
    """Its template engine fails for `null`."""
    job = {key: value for key, value in RECORDED["job"].items() if key not in ("deployments", "defaults")}
    job["parameters"] = {**job["parameters"], **RECORDED["parameters"]}
    job["taskRoles"] = {"worker": {**job["taskRoles"]["worker"], "commands": [text]}}
    if command is None:
        assert [each.unhandled for each in protocol_refusals(job)] == [True]
    else:
        assert task_command(job, "worker") == command


def test_a_repeated_key_of_a_job_is_refused(home: Path) -> None:
    with pytest.raises(ApiError, match="the key 'name' occurs twice") as refusal:
        parse_and_mask_job("name: a\nname: b\n")
    assert (refusal.value.status, refusal.value.code) == (500, "")
