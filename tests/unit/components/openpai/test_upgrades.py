# SPDX-License-Identifier: Apache-2.0
"""Jobs of earlier releases: lines that trainyard itself writes are not a change, all others are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.openpai.client.inputs import INPUTS
from components.openpai.plan import OpenPaiPlan, openpai_plan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.build import plan_of
from components.platform.values import canonical_json
from schemas.judge import judge_file
from tests.support.openpai_jobs import planned

RECORDED = Path(__file__).parents[3] / "upgrade" / "0.2.0-openpai"
LAUNCHES = '"$trainyard_python" -I -m launcher'
# As 0.2.0 wrote them: the end of a plain start of one process, and of several.
ENDED = {
    1: "trainyard_process 0",
    2: """\
trainyard_code=0; trainyard_children=()
for trainyard_number in $(seq 0 1); do
    ( trainyard_process $trainyard_number ) & trainyard_children+=($!)
done
wait || true
exit $trainyard_code""",
}
Job = dict[str, Any]


def protocols(plan: OpenPaiPlan, folder: Path) -> Mapping[str, Job]:
    return {
        f"{name}/{key}": openpai_run_inputs(plan, job, run, read_files(plan, job, folder), str)["protocol"]
        for name, job in plan.jobs.items()
        for key, run in job.runs.items()
    }


def own(folder: Path, **job: Any) -> Job:
    return protocols(planned(folder, job), folder)["train/base"]


def is_same(before: Job, after: Job) -> bool:
    seen = INPUTS.with_hidden({"protocol": before}, {"protocol": after})
    return canonical_json(seen["protocol"]) == canonical_json(after)


def edited(job: Job, change: Callable[[Job], None]) -> Job:
    copy: Job = json.loads(json.dumps(job))
    change(copy)
    return copy


def commands_of(job: Job) -> list[str]:
    commands: list[str] = job["taskRoles"]["main"]["commands"]
    return commands


def test_the_recorded_jobs_are_those_that_this_release_would_write(tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "local", tmp_path / "local")
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    file = shutil.copy(RECORDED / "Pulumi.local.yaml", tmp_path)
    plan = openpai_plan(plan_of(judge_file(Path(file))))
    rows = json.loads((RECORDED / "state.json").read_text())["deployment"]["resources"]
    runs = {row["urn"].rpartition("::")[2]: row["inputs"] for row in rows if row["type"] == "trainyard:index:Run"}
    now = protocols(plan, tmp_path)
    assert len(runs) == 4
    for wanted in (now, {name: not_isolated(job) for name, job in now.items()}):
        assert [name for name, run in runs.items() if not is_same(run["protocol"], wanted[name])] == []
    assert not_isolated(now["cifar10/base"]) != now["cifar10/base"]


def not_isolated(job: Job) -> Job:
    """As 0.2.0 wrote it: with Python as it is, wherever trainyard itself starts it."""
    copy: Job = json.loads(json.dumps(job).replace('$trainyard_python\\" -I ', '$trainyard_python\\" '))
    return copy


def test_another_way_to_start_the_launcher_is_no_change_but_another_limit_is(tmp_path: Path) -> None:
    before = own(tmp_path)
    assert LAUNCHES in commands_of(before)[-1]
    assert before != not_isolated(before)
    assert is_same(before, not_isolated(before))
    assert is_same(not_isolated(before), before)
    assert not is_same(before, own(tmp_path, maximumRuntimeMinutes=9))


@pytest.mark.parametrize("processes", ENDED)
def test_another_end_of_a_plain_start_is_no_change_but_another_program_is(processes: int, tmp_path: Path) -> None:
    plain: Any = {"start": "plain", "options": {"processes": processes}}
    after = own(tmp_path, **plain)
    before = edited(after, lambda job: commands_of(job).__setitem__(-1, ENDED[processes]))
    before = edited(before, lambda job: job["taskRoles"]["worker"]["commands"].__setitem__(-1, ENDED[processes]))
    assert before != after
    assert is_same(before, after)
    assert not is_same(before, own(tmp_path, command="other.py", **plain))
    assert not is_same(before, own(tmp_path, start="plain", options={"processes": 3 - processes}))
    assert not is_same(before, own(tmp_path, maximumRuntimeMinutes=9, **plain))


def test_the_spelling_of_the_default_registry_is_no_change_but_another_registry_is(tmp_path: Path) -> None:
    auth = {"user": "bot", "password": {"secure": "0123456789"}}
    after = own(tmp_path, image="team/train:1.0", imageAuth=auth)
    spelled = edited(after, lambda job: job["prerequisites"][0]["auth"].update(registryuri="docker.io"))
    other = edited(after, lambda job: job["prerequisites"][0]["auth"].update(registryuri="registry.example.com"))
    assert after["prerequisites"][0]["auth"]["registryuri"] == "https://index.docker.io/v1/"
    assert is_same(spelled, after)
    assert not is_same(other, after)


def test_a_command_that_now_arrives_is_no_change_but_another_command_is(tmp_path: Path) -> None:
    quotes = "echo \"it's\" > w; printf 'a\\nb\n' >> w"
    row = {"type": "data", "name": "digits", "uri": ["https://data.example.com/d"], "before": [quotes, "echo plain"]}
    plugin = {"plugin": "cmd", "parameters": {"preCommands": [quotes]}}
    after = own(tmp_path, prerequisites=[row], plugins=[plugin])
    before = edited(after, lambda job: job["prerequisites"][1]["callbacks"][0].update(commands=row["before"]))
    told = next(key for key in after["extras"] if key.endswith("runtimeplugin"))
    before = edited(before, lambda job: job["extras"][told][0].update(parameters=plugin["parameters"]))
    assert before != after
    assert is_same(before, after)
    other = {**row, "before": [quotes, "echo other"]}
    assert not is_same(before, own(tmp_path, prerequisites=[other], plugins=[plugin]))
