# SPDX-License-Identifier: Apache-2.0
"""Launch documents: what the plan writes, the schema describes and the launcher reads."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from catalog.frameworks import validation
from components.oci.client.job_runs import start_of_job_run
from components.plan.launch import VERSION, VERSION_WITH_KEEP, VERSION_WITH_WAITS
from components.plan.model import NodePlan
from components.platform.stack_requests import new_request_token, stack_request_name
from components.platform.status import parse_status
from launcher.board import parse_stack_requests
from launcher.document import VARIABLE, VERSIONS, read_launch
from launcher.errors import LaunchError
from launcher.placeholders import Place, node_values, process_values
from launcher.retries import start_name
from launcher.status import Status
from launcher.stores import Stored
from localcloud.oci.ocids import fixed_ocid
from tests.support.examples import EXAMPLES, plan, stack
from tests.support.oci_plans import oci_plan

UPGRADE = Path(__file__).parents[1] / "upgrade"
MAIN = fixed_ocid("datasciencejobrun", "main", "iad")
SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "launch.schema.json").read_text("utf-8"))


def nodes(name: str) -> Iterator[NodePlan]:
    for job in plan(name).jobs.values():
        for run in job.runs.values():
            yield from run.nodes


@pytest.mark.parametrize("name", [name for name in EXAMPLES if plan(name).jobs])
def test_the_launcher_reads_what_the_plan_writes(name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for node in nodes(name):
        written = json.loads(json.dumps(node.launch))
        validator.validate(written)
        launch = read_launch({VARIABLE: json.dumps(written), "NODE_RANK": str(node.rank)})
        assert (launch.node, launch.role, launch.rank) == (node.name, node.role, node.rank)
        assert launch.start == tuple(written["start"])
        assert launch.command == tuple(written["command"])
        assert launch.environment == written["environment"]
        assert launch.folder == written["folder"]
        assert [role.name for role in launch.roles] == [role["name"] for role in written["roles"]]
        assert launch.nodes == sum(role["replicas"] for role in written["roles"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_ranks_are_counted_once_and_the_main_role_is_first(name: str) -> None:
    for job in plan(name).jobs.values():
        for run in job.runs.values():
            spans = [range(node.rank, node.rank + node.replicas) for node in run.nodes]
            assert [rank for span in spans for rank in span] == list(range(job.nodes))
            assert run.nodes[0].role == job.roles[0].name


def test_writer_reader_and_schema_have_the_same_versions() -> None:
    assert {node.launch["version"] for node in nodes("oci-pytorch-ddp")} == {VERSION}
    assert {VERSION, VERSION_WITH_WAITS, VERSION_WITH_KEEP} < set(VERSIONS)
    assert list(VERSIONS) == SCHEMA["properties"]["version"]["enum"]


def test_the_documents_code_matches_the_schema() -> None:
    node = next(nodes("oci-pytorch-ddp"))
    git = {"url": "https://git.example.com/t.git", "branch": "main", "commit": "9f2c1e7", "secret": "key"}
    written = {**json.loads(json.dumps(node.launch)), "version": 3, "folder": "file:///runs/x", "code": {"git": git}}
    jsonschema.validate(written, SCHEMA)
    told = read_launch({VARIABLE: json.dumps(written), "OCI__RUNTIME_URI": "https://elsewhere.example.com/t.git"}).git
    assert told is not None
    assert (
        vars(told)
        == git
        == {name: git[name] for name in SCHEMA["properties"]["code"]["properties"]["git"]["properties"]}
    )
    with pytest.raises(jsonschema.ValidationError, match=r"2 is not one of \[3, 4, 5, 6\]"):
        jsonschema.validate({**written, "version": 2}, SCHEMA)
    with pytest.raises(LaunchError, match="unexpected keyword argument 'tag'"):
        read_launch({VARIABLE: json.dumps({**written, "code": {"git": {**git, "tag": "v1"}}})})


def test_keep_is_only_in_the_documents_of_its_job() -> None:
    """Other documents do not have the field, so their bytes do not change. An older launcher refuses the document's
    version."""
    written_stack = stack("oci-pytorch-ddp")
    job = replace(written_stack.jobs["resnet"], keep=("model.pt", "results/**"))
    made = oci_plan(replace(written_stack, jobs={"resnet": job}))
    for before, node in zip(nodes("oci-pytorch-ddp"), made.jobs["resnet"].runs["base"].nodes, strict=False):
        written = json.loads(json.dumps(node.launch))
        jsonschema.validate(written, SCHEMA)
        assert written == {**before.launch, "version": VERSION_WITH_KEEP, "keep": ["model.pt", "results/**"]}
        assert read_launch({VARIABLE: json.dumps(written)}).keep == ("model.pt", "results/**")
        with pytest.raises(jsonschema.ValidationError, match=r"3 is not one of \[4, 5, 6\]"):
            jsonschema.validate({**written, "version": 3}, SCHEMA)
    assert all("keep" not in node.launch for name in EXAMPLES for node in nodes(name))


def test_readers_understand_the_launchers_status_objects() -> None:
    values = {"int": 1, "float": 1.5, "str": "x", "Any": {"step": 1}}
    status = {one.name: values[one.type.removesuffix(" | None")] for one in fields(Status)}
    assert parse_status(json.dumps(status).encode()) == status


def recorded(run: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Each node of a recorded run that the launcher starts, with its variables. On OpenPAI, these are in the
    commands."""
    for node in run["nodes"]:
        variables = dict(node.get("environment") or {})
        for command in run["protocol"]["taskRoles"][node["role"]]["commands"] if "protocol" in run else ():
            if command.startswith("export "):
                variables |= dict(word.split("=", 1) for word in shlex.split(command)[1:])
        if VARIABLE in variables:
            yield node, variables


@pytest.mark.parametrize("state", sorted(UPGRADE.glob("*/state.json")), ids=lambda path: path.parent.name)
def test_documents_of_earlier_releases_are_read_unchanged(state: Path) -> None:
    """A new image may get an old document."""
    rows = json.loads(state.read_text("utf-8"))["deployment"]["resources"]
    runs = [row["inputs"] for row in rows if row["type"] == "trainyard:index:Run"]
    written = [(run, node, variables) for run in runs for node, variables in recorded(run)]
    assert written
    for run, node, variables in written:
        index = node["rank"] - min(each["rank"] for each in run["nodes"] if each["role"] == node["role"])
        told = {
            "NODE_RANK": str(node["rank"]), "JOB_RUN_OCID": MAIN, "MAIN_JOB_RUN_OCID": MAIN,
            "PAI_CURRENT_TASK_ROLE_NAME": node["role"], "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(index),
            **variables,
        }  # fmt: skip
        launch = read_launch(told)
        # A task role of OpenPAI has one document for all its tasks.
        assert node["name"] in (launch.node, f"{launch.node}-{index}")
        assert (launch.rank, launch.role) == (node["rank"], node["role"])
        if run.get("platform", "oci") == "oci":
            assert start_name(launch) == start_of_job_run(MAIN, {})
        git = launch.git
        assert (git.url if git else None) == told.get("OCI__RUNTIME_URI")
        assert git is None or (git.branch, git.commit) == ("main", told["OCI__RUNTIME_GIT_COMMIT"])


def test_another_version_is_refused_with_the_remedy() -> None:
    node = next(nodes("oci-pytorch-ddp"))
    later = {**node.launch, "version": max(VERSIONS) + 1}
    with pytest.raises(LaunchError, match="rebuild the image"):
        read_launch({VARIABLE: json.dumps(later)})


def test_the_schema_refuses_a_key_it_does_not_know() -> None:
    node = next(nodes("oci-pytorch-ddp"))
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.validate({**node.launch, "surprise": 1}, SCHEMA)


def test_every_placeholder_of_a_framework_file_is_known_to_the_launcher() -> None:
    node = next(nodes("oci-pytorch-ddp"))
    launch = read_launch({VARIABLE: json.dumps(node.launch), "NODE_RANK": "0"})
    values = node_values(launch, Place(("10.0.0.2",) * launch.nodes, "10.0.0.2", "eth0"))
    assert {name for name in values if "." not in name} == validation.OF_A_NODE
    assert {name for name in values if "." in name} >= {"address.main", "addresses.main"}
    assert set(process_values(launch, 0)) == validation.OF_A_PROCESS


def test_no_placeholder_of_the_plan_is_left_in_a_launch_document() -> None:
    for name in EXAMPLES:
        for node in nodes(name):
            assert not re.findall(
                r"\{(?:port|option)\.[^}]*\}", json.dumps([node.launch, *node.environment.items()], default=str)
            )


def test_the_launcher_finds_the_requests_for_stacks_that_commands_write() -> None:
    token = new_request_token()
    asked = [Stored(stack_request_name(token), "2026-05-01T12:00:00Z", 0, "")]
    assert parse_stack_requests(asked, 1.0) == (token,)
    for wrong in ("", token.upper() + "A", f"../{token}", token[:-1]):
        with pytest.raises(ValueError, match="is not a token"):
            stack_request_name(wrong)
