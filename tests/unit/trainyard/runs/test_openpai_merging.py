# SPDX-License-Identifier: Apache-2.0
"""Merging of a try's differences into a deployed job."""

from typing import Any

import pytest

from components.openpai.client.job_tries import differing_keys, merge_protocols
from components.openpai.plain_command import export_line, json_word
from components.platform.tries import TryError


def _job(args: str = "1", image: str = "a:1", code: str = "tar 1", stall: int = 5, **more: str) -> dict[str, Any]:
    env = [f"export {name}={value}" for name, value in more.items()]
    launch = {"command": ["train.py", args], "folder": f"/mnt/{args}", "stallMinutes": stall}
    commands = [*env, code, export_line("TRAINYARD_LAUNCH", json_word(launch)), "exec launcher"]
    return {
        "prerequisites": [{"name": "image", "uri": image}],
        "taskRoles": {"worker": {"instances": 2, "commands": commands}},
        "extras": {"trainyard": {"folder": f"file:///mnt/{args}"}},
    }


def test_what_is_deployed_stays_where_the_try_changes_nothing() -> None:
    deployed = _job(image="a:0", code="tar 0", stall=9, LEVEL="x")
    made = merge_protocols(deployed, _job(LEVEL="y"), _job("2", LEVEL="y"))
    assert made == _job("2", image="a:0", code="tar 0", stall=9, LEVEL="x")
    assert set(differing_keys(deployed, _job(LEVEL="y"))) == {"image", "code", "stallMinutes", "env.LEVEL"}


def test_what_the_try_adds_comes_beside_it() -> None:
    assert merge_protocols(_job(), _job(), _job(NEW="1")) == _job(NEW="1")
    assert merge_protocols({"a": 1}, {}, {"b": 2}) == {"a": 1, "b": 2}
    assert merge_protocols({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1}) == {"a": 1}


@pytest.mark.parametrize(
    ("deployed", "own", "key"),
    [
        (_job("0"), _job("2"), "command"),
        (_job(LEVEL="0"), _job(LEVEL="2"), "env.LEVEL"),
        (_job(code="tar 0"), _job(NEW="1"), "code"),
        (_job(image="a:0"), _job(image="a:2"), "image"),
    ],
)
def test_a_value_that_both_changed_is_refused(deployed: dict[str, Any], own: dict[str, Any], key: str) -> None:
    like = _job(LEVEL="1") if "LEVEL" in str(own) else _job()
    with pytest.raises(TryError, match=rf"`{key}` has changed"):
        merge_protocols(deployed, like, own)


@pytest.mark.parametrize(
    "runs", ["trainyard_command=; read\ntrain {}\nEND", "trainyard_process() {{\nexec train {}\n}}"]
)
def test_a_command_that_bash_runs_is_called_the_command(runs: str) -> None:
    deployed, like, own = (
        {"taskRoles": {"worker": {"commands": ["tar 1", runs.format(lr)]}}} for lr in ("0", "1", "2")
    )
    assert list(differing_keys(deployed, like)) == ["command"]
    with pytest.raises(TryError, match="`command` has changed"):
        merge_protocols(deployed, like, own)
