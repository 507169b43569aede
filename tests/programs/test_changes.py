# SPDX-License-Identifier: Apache-2.0
"""Which resources a change of the stack file changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.plan.model import RUN_TYPE
from components.platform.inputs import without_expects
from tests.programs.conftest import Written
from tests.support.recorder.client import Recording, Resource

Config = dict[str, Any]


def moved(before: Recording, after: Recording) -> set[str]:
    """Logical names of what was added, removed or changed."""
    one = {resource.urn: resource for resource in before.resources}
    other = {resource.urn: resource for resource in after.resources}
    gone = {resource.name for urn, resource in (one | other).items() if urn not in one or urn not in other}
    both = one.keys() & other.keys()
    return gone | {one[urn].name for urn in both if compared(one[urn]) != compared(other[urn])}


def compared(resource: Resource) -> Mapping[str, Any]:
    """What the engine or the provider compares of a resource."""
    return without_expects(dict(resource.changing)) if resource.type == RUN_TYPE else resource.changing


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda job: job["runs"]["tuned"].update(args=["--lr", "0.2"]), {"resnet/tuned"}),
        (lambda job: job["runs"]["tuned"].update(env={"RUN_NOTE": "again"}), {"resnet/tuned"}),
        (lambda job: job["runs"]["tuned"].update(attempt=3), {"resnet/tuned"}),
        (lambda job: job["runs"].pop("base"), {"resnet/base"}),
        (lambda job: job.update(command="train.py --epochs 11"), {"resnet/base", "resnet/tuned"}),
        (lambda job: job.update(env={"SEED": "7"}), {"resnet/base", "resnet/tuned"}),
        (lambda job: job.update(image="${registry}:1.5"), {"resnet/base", "resnet/tuned"}),
        (lambda job: job.update(maximumRuntimeMinutes=90), {"resnet/base", "resnet/tuned"}),
        (lambda job: job.update(keep=["model.pt"]), {"resnet/base", "resnet/tuned"}),
        (lambda job: job.update(blockStorageGb=200), {"resnet"}),
    ],
    ids=[
        "args",
        "env of a run",
        "attempt",
        "run removed",
        "command",
        "env",
        "image",
        "maximum runtime",
        "keep",
        "disk",
    ],
)
def test_a_change_affects_only_its_own_resources(
    change: Callable[[Config], Any], expected: set[str], changed: Written
) -> None:
    before = changed("oci-pytorch-ddp", lambda config: None)
    after = changed("oci-pytorch-ddp", lambda config: change(config["trainyard:jobs"]["resnet"]))
    assert moved(before, after) == expected


def test_a_job_without_runs_is_as_the_file_says(changed: Written) -> None:
    def alone(config: Config) -> None:
        config["trainyard:jobs"]["resnet"]["runs"] = {}

    assert changed("oci-pytorch-ddp", alone).one("Job").ignored == ()


def test_another_layout_is_another_job(changed: Written) -> None:
    """Inputs that the engine ignores in one layout do not exist in the other."""

    def single(config: Config) -> None:
        job = config["trainyard:jobs"]["resnet"]
        del job["layout"]
        del job["roles"]["worker"]["completion"]

    one, other = (changed("oci-pytorch-multi-node", how).one("Job") for how in (lambda config: None, single))
    assert (one.name, other.name) == ("resnet/groups", "resnet")
    assert one.ignored == ()
    assert other.ignored == (
        "jobConfigurationDetails.maximumRuntimeInMinutes",
        "jobEnvironmentConfigurationDetails.image",
    )


def test_removing_a_job_changes_no_other(changed: Written) -> None:
    def three(config: Config) -> None:
        jobs = config["trainyard:jobs"]
        jobs.update(early=dict(jobs["resnet"]), zoo=dict(jobs["resnet"]))

    def without_the_first(config: Config) -> None:
        three(config)
        config["trainyard:jobs"].pop("resnet")

    gone = moved(changed("oci-pytorch-ddp", three), changed("oci-pytorch-ddp", without_the_first))
    assert gone == {"resnet", "resnet/base", "resnet/tuned"}


def test_changed_code_is_a_new_artifact_and_moved_code_is_not(changed: Written, tmp_path: Path) -> None:
    def artifact() -> str:
        recording = changed("oci-existing", lambda config: None)
        found = recording.one("Job")
        return str(found.inputs["jobArtifact"])

    first = artifact()
    assert first.startswith(".trainyard/artifacts/oci-existing/scores-")
    assert (tmp_path / first).is_file()
    assert artifact() == first
    script = tmp_path / "examples" / "pytorch-ddp" / "extra.py"
    script.write_text("print('more')\n", "utf-8")
    assert artifact() != first


def test_node_groups_have_the_settings_of_single_nodes(changed: Written) -> None:
    recording = changed("oci-pytorch-multi-node", lambda config: None)
    made = recording.one("Job")
    assert "jobConfigurationDetails" not in made.inputs
    assert "jobInfrastructureConfigurationDetails" not in made.inputs
    assert "jobEnvironmentConfigurationDetails" not in made.inputs
    groups = made.inputs["jobNodeConfigurationDetails"]["jobNodeGroupConfigurationDetailsLists"]
    told = [(group["name"], group["replicas"], group["minimumSuccessReplicas"]) for group in groups]
    assert told == [("main", 1, 1), ("worker", 7, 6)]
    run = recording.one("Run").inputs
    assert run["layout"] == "node-groups"
    launched = [json.loads(node["environment"]["TRAINYARD_LAUNCH"]) for node in run["nodes"]]
    assert [document["rank"] for document in launched] == [None, None]
    assert all(document["peers"] == {"from": "cluster-metadata"} for document in launched)
    assert [node["environment"].get("LOADER_WORKERS") for node in run["nodes"]] == [None, "12"]
