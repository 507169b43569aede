# SPDX-License-Identifier: Apache-2.0
"""`trainyard:index:Run` on a cluster of AWS DL1, through the provider protocol: tickets, waits, ends and losses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.aws_cluster import AwsWorld, aws_world

RUN = "trainyard:index:Run"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsWorld]:
    with aws_world(tmp_path_factory.mktemp("aws")) as made:
        yield made


def test_a_run_runs_to_its_end_and_the_second_up_changes_nothing(world: AwsWorld) -> None:
    with world.cluster("whole") as cluster:
        cluster.ends["base"] = "SUCCEEDED"
        made = world.engine.create(RUN, "whole", cluster.run())
        assert made.id == f"aws-dl1/{world.bucket}/whole/00000001/main-0"
        assert made.outputs["state"] == "SUCCEEDED"
        assert [node["name"] for node in made.outputs["nodeRuns"]] == ["main-0", "worker-0"]
        assert not world.engine.diff(made, cluster.run()).replaces
        (ticket,) = cluster.tickets()
        assert (ticket["number"], ticket["start"], ticket["run"]) == (1, "s00000001", "base")
        assert "released" not in ticket
        refreshed = world.engine.refresh(made)
        assert refreshed is not None
        assert refreshed.outputs == made.outputs
        imported = world.engine.import_(RUN, "whole", made.id)
        assert imported is not None
        assert imported.inputs["cluster"] == cluster.inputs
        assert imported.inputs["nodes"][1]["name"] == "worker-0"
        world.engine.delete(made)
        assert cluster.tickets()[0]["released"] is True
