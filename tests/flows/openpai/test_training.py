# SPDX-License-Identifier: Apache-2.0
"""Planned jobs train on two tasks of the local OpenPAI: with the launcher, and with a plain command in an image without
it; also Dask, whose nodes are not retried together, and programs that were written for OpenPAI."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.openpai.plan import OpenPaiPlan, openpai_plan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.build import plan_of
from localcloud.control import Cloud
from schemas.judge import judge_file
from tests.support.examples import STACKS, stack_file
from tests.support.framework_examples import EXAMPLES
from tests.support.openpai_world import OpenPaiWorld

_TORCH = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
with open(os.path.join(os.environ["TRAINYARD_OUTPUT"], "model"), "w") as model:
    model.write(f"{int(total)} by {dist.get_world_size()} over {os.environ['GLOO_SOCKET_IFNAME']} {sys.argv[1:]}")
"""
_DASK = """
import os, distributed
with distributed.Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
    total = sum(client.gather(client.map(lambda each: each * each, range(10))))
    open(os.path.join(os.environ["TRAINYARD_OUTPUT"], "model"), "w").write(f"{total} by {client.nthreads().__len__()}")
"""
_IMAGE = "openpai/standard:python_3.6-pytorch_1.2.0-gpu"
_PAIR = {"main": {"replicas": 1}, "worker": {"replicas": 1}}
_DATA = {
    "type": "data", "name": "digits", "uri": ["https://data.example.com/digits", "https://data.example.com/more"],
    "before": ["cd $HOME", 'echo "<% $data.uri[1] %>" > digits'],
}  # fmt: skip
_RESULTS = {
    "type": "output", "name": "models", "uri": ["models"],
    "after": ["cp $HOME/digits /data/<% $output.uri %>-$PAI_CURRENT_TASK_ROLE_NAME"],
}  # fmt: skip
_JOBS: Mapping[str, dict[str, Any]] = {
    "launcher": {"framework": "pytorch", "roles": _PAIR, "code": "./torch", "command": "python train.py --lr 0.1"},
    "plain": {
        "framework": "pytorch", "roles": _PAIR, "code": "./torch", "command": "python train.py --lr 0.1",
        "start": "plain", "image": _IMAGE, "prerequisites": [_DATA, _RESULTS],
    },
    "dask": {
        "framework": "dask", "roles": {"scheduler": {"replicas": 1}, "worker": {"replicas": 2, "retry": {"count": 1}}},
        "code": "./dask", "command": "python train.py",
    },
}  # fmt: skip
_SUM = "3 by 2 over eth0 ['--lr', '0.1']"
# Ray needs ranges of ports, but OpenPAI reserves single ones. The others take minutes.
_FRAMEWORKS = list(EXAMPLES) if os.environ.get("TRAINYARD_TORTURE") else ["ray"]
# The results of each job of the shipped stack `openpai-as-is`. Only `make torture` trains all six (fourteen tasks).
_LEFT_AS_IS: Mapping[str, dict[str, int]] = {
    "data-parallel": {"ranks": 1}, "ddp": {"ranks": 4}, "apex": {"ranks": 2}, "imagenet": {"ranks": 2},
    "many": {"tasks": 2}, "servers": {"workers": 2},
}  # fmt: skip
_AS_IS = list(_LEFT_AS_IS) if os.environ.get("TRAINYARD_TORTURE") else ["ddp", "servers"]
_MODELS = {"launcher": _SUM, "plain": _SUM, "dask": "285 by 2"}


def _submitted(cloud: Cloud, folder: Path, jobs: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """The names of the jobs of a stack, by those that the stack file has."""
    (storage,) = (cloud.home / "storages").iterdir()
    more = {"image": "example.com/team/image:1", "shape": {"name": "small"}, "runs": {"base": {}}}
    config = {
        "trainyard:platform": "openpai",
        "trainyard:team": "vision",
        "trainyard:environment": "dev",
        "trainyard:cluster": {"uri": cloud.endpoint, "user": "user"},
        "trainyard:skus": {"small": {"cpus": 1, "memoryGb": 2}},
        "trainyard:storage": {"name": storage.name, "mount": "/data"},
        "trainyard:jobs": {name: {**more, **written} for name, written in jobs.items()},
    }
    return _of_a_plan(cloud, folder, _planned(folder / "Pulumi.training.yaml", yaml.safe_dump({"config": config})))


def _planned(file: Path, text: str) -> OpenPaiPlan:
    file.write_text(text)
    judged = judge_file(file)
    assert not judged.errors, judged.errors
    return openpai_plan(plan_of(judged))


def _of_a_plan(cloud: Cloud, folder: Path, plan: OpenPaiPlan) -> dict[str, str]:
    world, names = OpenPaiWorld(cloud), {}
    for name, spec in plan.jobs.items():
        inputs = openpai_run_inputs(plan, spec, spec.runs["base"], read_files(plan, spec, folder), str)
        names[name] = world.submitted({**inputs["protocol"], "name": f"{name}-1f2e3d4c"})
    return names


def _as_it_is(cloud: Cloud, storage: str, folder: Path) -> dict[str, str]:
    """The names of the jobs of the shipped stack, on this cluster and its storage."""
    text = stack_file("openpai-as-is").read_text()
    changes = {
        '"https://openpai.example.com", user: vision-bot': f'"{cloud.endpoint}", user: user',
        "storage: { name: vision-nfs }": f"storage: {{ name: {storage}, mount: /mnt/vision-nfs }}",
    }
    for written, here in changes.items():
        assert text.count(written) == 1
        text = text.replace(written, here)
    shutil.copytree(STACKS / "examples" / "openpai", folder / "examples" / "openpai")
    plan = _planned(folder / "Pulumi.as-is.yaml", text)
    assert plan.jobs.keys() == _LEFT_AS_IS.keys()
    return _of_a_plan(cloud, folder, replace(plan, jobs={name: plan.jobs[name] for name in _AS_IS}))


@pytest.fixture(scope="module")
def started(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The names of all jobs, which run at the same time."""
    folder = tmp_path_factory.mktemp("training")
    for name, script in {"torch": _TORCH, "dask": _DASK}.items():
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(script)
    return _submitted(shared_cloud, folder, _JOBS)


@pytest.mark.parametrize("name", _JOBS)
def test_a_planned_job_trains_on_tasks_with_reserved_ports(
    name: str, started: Mapping[str, str], shared_cloud: Cloud
) -> None:
    ended = OpenPaiWorld(shared_cloud).ended(started[name])
    said = [path.read_text() for path in (shared_cloud.home / "openpai" / "logs").glob("*/all")]
    assert ended["jobStatus"]["state"] == "SUCCEEDED", (ended, said)
    (storage,) = (shared_cloud.home / "storages").iterdir()
    run = storage / "vision" / "dev" / name / "base"
    models = {path.read_text() for path in run.glob("1/*/output/**/model")}
    assert models == {_MODELS[name]}
    (start,) = (run / "1").iterdir()
    assert start == Path(run, "1", f"{name}-1f2e3d4c-0")


def test_tasks_run_the_commands_of_prerequisites(started: Mapping[str, str], shared_cloud: Cloud) -> None:
    ended = OpenPaiWorld(shared_cloud).ended(started["plain"])
    assert ended["jobStatus"]["state"] == "SUCCEEDED", ended
    (storage,) = (shared_cloud.home / "storages").iterdir()
    copied = {path.name: path.read_text().strip() for path in storage.glob("models-*")}
    assert copied == dict.fromkeys(("models-main", "models-worker"), "https://data.example.com/more")


def test_scripts_written_for_openpai_train_unchanged(shared_cloud: Cloud, tmp_path: Path) -> None:
    """Roles and port labels have the names that the scripts expect. All jobs run at the same time and in one test,
    because each pytest worker would otherwise start all of them.
    """
    (storage,) = (shared_cloud.home / "storages").iterdir()
    names = _as_it_is(shared_cloud, storage.name, tmp_path)
    for name in _AS_IS:
        ended = OpenPaiWorld(shared_cloud).ended(names[name])
        said = [path.read_text() for path in (shared_cloud.home / "openpai" / "logs").glob("*/all")]
        assert (ended["jobStatus"]["state"], ended["jobStatus"]["retries"]) == ("SUCCEEDED", 0), (name, ended, said)
        run = storage / "vision" / "as-is" / name / "base" / "1"
        results = [json.loads(path.read_text()) for path in run.glob("**/result.json")]
        assert results == [_LEFT_AS_IS[name]] * len(results) != [], name


@pytest.mark.parametrize("name", _FRAMEWORKS)
@pytest.mark.torture
def test_every_framework_trains_with_reserved_ports(name: str, shared_cloud: Cloud, tmp_path: Path) -> None:
    """With `start: launcher`, which `check` allows for all of them."""
    example = EXAMPLES[name]
    example.environment()
    shutil.copytree(example.folder, tmp_path / "code")
    called = f"each-{name}"
    written = {
        "framework": example.framework, "roles": dict(example.roles), "code": "./code", "command": example.command,
        "options": dict(example.options), **({"strategy": example.strategy} if example.strategy else {}),
    }  # fmt: skip
    submitted = _submitted(shared_cloud, tmp_path, {called: written})
    ended = OpenPaiWorld(shared_cloud).ended(submitted[called])
    assert ended["jobStatus"]["state"] == "SUCCEEDED", ended
    (storage,) = (shared_cloud.home / "storages").iterdir()
    left = [path.read_text() for path in (storage / "vision" / "dev" / called).glob("base/1/*/output/**/result.json")]
    assert any(example.result in text for text in left), left
