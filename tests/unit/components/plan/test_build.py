# SPDX-License-Identifier: Apache-2.0
"""Jobs, runs and launch documents in the plan."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.plan.build import StackFileError, plan_file
from components.plan.model import RunPlan
from schemas.model import Code, Completion, Git, Job, PortRange, Role, Run, Secret
from tests.support.examples import STACKS
from tests.support.local_team import SHIPPED
from tests.support.oci_plans import oci_plan
from tests.support.samples import job, plan, stack

PS = {"main": 1, "worker": 2, "ps": 2}


def base(of: Job) -> RunPlan:
    return plan(jobs={"train": of}).jobs["train"].runs["base"]


def test_ranks_follow_the_order_of_the_framework_not_of_the_file() -> None:
    told = base(job("dask", {"worker": 2, "scheduler": 1}))
    assert [(node.name, node.rank) for node in told.nodes] == [("scheduler-0", 0), ("worker-0", 1), ("worker-1", 2)]


def test_a_role_without_nodes_is_no_part_of_the_run() -> None:
    assert [node.name for node in base(job(roles={"main": 1, "worker": 0})).nodes] == ["main-0"]


def test_parameter_servers_have_no_rank_of_ads() -> None:
    told = base(job("tensorflow", PS, strategy="parameter-server"))
    ranks = {node.name: node.environment.get("RANK") for node in told.nodes}
    assert ranks == {"main-0": "0", "worker-0": "1", "worker-1": "2", "ps-0": None, "ps-1": None}
    assert {node.environment["OCI__PS_COUNT"] for node in told.nodes} == {"2"}
    assert [node.environment["OCI__MODE"] for node in told.nodes] == ["MAIN", "WORKER", "WORKER", "PS", "PS"]


def test_the_runs_variables_win_over_the_roles_and_those_over_the_jobs() -> None:
    sample = replace(
        job(env={"A": "job", "B": "job", "C": "job"}, runs={"base": Run(env={"A": "run"})}),
        roles={"main": Role(1, env={"A": "role", "B": "role"})},
    )
    environment = base(sample).nodes[0].environment
    assert {name: environment[name] for name in "ABC"} == {"A": "run", "B": "role", "C": "job"}


def test_secrets_are_carried_and_references_filled_in() -> None:
    token = Secret("do-not-print-me")
    environment = base(job(env={"TOKEN": token, "WHERE": "${team}/${run}", "LATER": "${bucket}"})).nodes[0].environment
    assert environment["TOKEN"] is token
    assert environment["WHERE"] == "vision/base"
    assert environment["LATER"] == "${bucket}"
    assert "do-not-print-me" not in repr(environment)


def test_arguments_of_a_run_come_after_those_of_the_command() -> None:
    sample = job(command="train.py --epochs 3", runs={"base": Run(args=("--name", "two words"))})
    node = base(sample).nodes[0]
    assert node.launch["command"] == ["train.py", "--epochs", "3", "--name", "two words"]
    assert node.environment["OCI__ENTRY_SCRIPT"] == "train.py"
    assert shlex.split(str(node.environment["OCI__ENTRY_SCRIPT_ARGS"])) == ["--epochs", "3", "--name", "two words"]


@given(st.lists(st.text(min_size=1), max_size=5))
def test_arguments_reach_the_command_as_they_were_written(words: list[str]) -> None:
    told = base(job(runs={"base": Run(args=tuple(words))}))
    assert told.nodes[0].launch["command"] == ["train.py", *words]


def test_a_role_may_have_a_command_of_its_own() -> None:
    roles = {"main": Role(1), "worker": Role(1, command="serve.py --port 1")}
    sample = job(roles={"main": 1, "worker": 1})
    told = base(replace(sample, roles=roles))
    assert [node.launch["command"] for node in told.nodes] == [["train.py"], ["serve.py", "--port", "1"]]


def test_code_from_git_is_told_as_ads_images_read_it() -> None:
    git = Git("https://git.example.com/a.git", "main", "9f2c1e7", "ocid1.vaultsecret.oc1..a")
    environment = base(job(code=Code(git=git))).nodes[0].environment
    assert environment["OCI__RUNTIME_URI"] == git.url
    assert environment["OCI__RUNTIME_GIT_COMMIT"] == "9f2c1e7"
    assert environment["OCI__RUNTIME_GIT_SECRET_ID"] == git.secret


def test_code_from_git_is_told_in_node_groups_and_to_a_framework_that_ads_does_not_know() -> None:
    git = Git("https://git.example.com/a.git", commit="9f2c1e7")
    wanted = {"OCI__RUNTIME_TYPE": "git", "OCI__RUNTIME_URI": git.url, "OCI__RUNTIME_GIT_COMMIT": "9f2c1e7"}
    for node in base(job(code=Code(git=git), layout="node-groups")).nodes:
        assert node.environment == wanted
    columns = tomllib.loads((STACKS / "examples/own-framework/script.toml").read_text())
    assert "ads" not in columns
    own = job(columns["name"], roles=dict.fromkeys(columns["roles"], 1), code=Code(git=git))
    (run,) = oci_plan(stack(jobs={"train": own}), {columns["name"]: columns}).jobs["train"].runs.values()
    for node in run.nodes:
        assert wanted.items() <= node.environment.items()


def test_dask_is_told_the_ports_that_are_opened() -> None:
    sample = job(
        "dask",
        {"scheduler": 1, "worker": 1},
        ports={"worker": PortRange(8700, 8703), "nanny": PortRange(3000, 3003)},
        options={"workers": 4},
    )
    scheduler, worker = base(sample).nodes
    words = worker.launch["start"]
    assert words[words.index("--worker-port") + 1] == "8700:8703"
    assert words[words.index("--nanny-port") + 1] == "3000:3003"
    assert words[words.index("--nworkers") + 1] == "4"
    assert "--no-nanny" not in words
    assert worker.launch["command"] == []
    assert scheduler.launch["command"] == ["train.py"]
    assert scheduler.environment["OCI__START_ARGS"] == "--worker-port 8700:8703 --nanny-port 3000:3003"


def test_dask_without_nannies_says_so() -> None:
    sample = job("dask", {"scheduler": 1, "worker": 1}, options={"nanny": False})
    words = base(sample).nodes[1].launch["start"]
    assert "--no-nanny" in words
    assert "--nanny-port" not in words
    # Images of ADS start workers themselves.
    assert base(sample).nodes[1].environment["OCI__START_ARGS"] == "--worker-port 8700:8800 --no-nanny"


def test_ads_images_are_told_no_port_that_the_strategy_does_not_have() -> None:
    alone = base(job("tensorflow", {"main": 1}, strategy="mirrored")).nodes[0].environment
    assert "WORKER_PORT" not in alone
    together = base(job("tensorflow", {"main": 1, "worker": 1}, strategy="multi-worker-mirrored")).nodes[0].environment
    assert together["WORKER_PORT"] == "12345"


def test_options_that_are_on_are_told_by_environment() -> None:
    on = base(job("horovod", options={"autotune": True, "fp16": True})).nodes[0].launch["environment"]
    off = base(job("horovod")).nodes[0].launch["environment"]
    assert set(on) - set(off) == {"HOROVOD_AUTOTUNE", "TRAINYARD_COMPRESSION"}


@pytest.mark.parametrize(("wanted", "expected"), [(None, 3), (-1, 3), (2, 2), (9, 3)])
def test_a_group_succeeds_with_as_many_nodes_as_were_asked_for(wanted: int | None, expected: int) -> None:
    roles = {"main": Role(1), "worker": Role(3, completion=Completion(min_succeeded=wanted))}
    sample = job(layout="node-groups")
    made = plan(jobs={"train": replace(sample, roles=roles)})
    assert [role.minimum_success for role in made.jobs["train"].roles] == [1, expected]
    groups = made.jobs["train"].runs["base"].nodes
    assert [(node.name, node.rank, node.replicas, node.minimum_success) for node in groups] == [
        ("main", 0, 1, 1),
        ("worker", 1, 3, expected),
    ]
    assert [node.launch["rank"] for node in groups] == [None, None]


def test_ranks_of_groups_begin_after_the_nodes_before_them() -> None:
    groups = base(job("tensorflow", PS, strategy="parameter-server", layout="node-groups")).nodes
    assert [(node.name, node.rank, node.replicas) for node in groups] == [
        ("main", 0, 1),
        ("worker", 1, 2),
        ("ps", 3, 2),
    ]


def test_another_attempt_meets_at_another_place() -> None:
    places = {base(job(runs={"base": Run(attempt=number)})).nodes[0].launch["folder"] for number in (1, 2)}
    assert places == {"${bucket}/train/base/1", "${bucket}/train/base/2"}


def test_the_paths_of_a_copy_are_those_of_its_original(tmp_path: Path) -> None:
    copy = tmp_path / "Pulumi.local.yaml"
    copy.write_text((SHIPPED / "Pulumi.local.yaml").read_text())
    with pytest.raises(StackFileError):
        plan_file(copy, print)
    assert plan_file(copy, print, SHIPPED) == plan_file(SHIPPED / "Pulumi.local.yaml", print)
