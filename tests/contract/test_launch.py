# SPDX-License-Identifier: Apache-2.0
"""Launch documents: what the plan writes, the schema describes and the launcher reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from components.plan.model import NodePlan
from launcher.document import VARIABLE, VERSION, LaunchError, read
from tests.examples import EXAMPLES, plan

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
        launch = read({VARIABLE: json.dumps(written), "NODE_RANK": str(node.rank)})
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


def test_writer_reader_and_schema_speak_of_one_version() -> None:
    assert {node.launch["version"] for node in nodes("oci-pytorch-ddp")} == {
        VERSION,
        SCHEMA["properties"]["version"]["const"],
    }


def test_another_version_is_refused_with_the_remedy() -> None:
    node = next(nodes("oci-pytorch-ddp"))
    later = {**node.launch, "version": VERSION + 1}
    with pytest.raises(LaunchError, match="build the image anew"):
        read({VARIABLE: json.dumps(later)})


def test_the_schema_refuses_a_key_it_does_not_know() -> None:
    node = next(nodes("oci-pytorch-ddp"))
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.validate({**node.launch, "surprise": 1}, SCHEMA)
