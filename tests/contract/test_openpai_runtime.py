# SPDX-License-Identifier: Apache-2.0
"""Compares the rules of OpenPAI's runtime (catalog/openpai.py) with recorded answers of its own code, and with the code
itself if there is a checkout.

TRAINYARD_OPENPAI_SOURCE names the checkouts: tests/support/openpai_source.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.openpai import (
    changed_in_password,
    checker_problem,
    ignores_password,
    image_checker_problem,
    reads_unchanged,
    reported_exit_code,
)
from components.openpai.protocol import with_secrets
from localcloud.openpai.hosts.task_assignments import task_scripts
from tests.support.cluster_tasks import attempt_of
from tests.support.openpai_jobs import job_of
from tests.support.openpai_source import QUESTIONS, VARIABLE, answers, recorded

SOURCE = os.environ.get(VARIABLE, "")
OURS: dict[str, Callable[..., Any]] = {
    "images": lambda uri: not image_checker_problem(uri),
    "registries": lambda uri, registry: not ignores_password(uri, registry),
    "passwords": lambda text: not changed_in_password(text),
    "texts": reads_unchanged,
    "secrets": with_secrets,
    "checks": lambda rows, secrets: (
        not checker_problem(
            {"prerequisites": rows, "secrets": secrets, "taskRoles": {"main": {"dockerImage": "image"}}}, "main"
        )
    ),
    "ends": lambda code, said: reported_exit_code(code, said.encode()),
}
# Both kinds of quotes, backslashes, lines, a here-document, and what one command leaves to the next.
BEFORE = [
    "echo \"it's here\"; printf 'a\\nb\\n'",
    "cat <<'END'\none 'two' \"three\" \\four\nEND",
    "place=<% $data.uri[0] %>",
    "printf '%s\\n' \"$place's \\\\\"",
]
SAID = "it's here\na\nb\none 'two' \"three\" \\four\nhttps://data.example.com/d's \\\n"


@pytest.mark.parametrize("rule", OURS)
def test_a_rule_gives_the_recorded_answer_of_the_runtime(rule: str) -> None:
    assert [case[:-1] for case in recorded()[rule]] == QUESTIONS[rule]
    some: dict[str, set[Any]] = {"ends": {255, 232}, "secrets": {"", "plain", "a&amp;b&lt;c&gt;&quot;d&quot;&#x27;e"}}
    assert {case[-1] for case in recorded()[rule]} >= some.get(rule, {True, False})
    assert [case for case in recorded()[rule] if OURS[rule](*case[:-1]) != case[-1]] == []


def _job(folder: Path) -> dict[str, Any]:
    row = {"type": "data", "name": "digits", "uri": ["https://data.example.com/d"], "before": BEFORE}
    return job_of(folder, {"prerequisites": [row]})


def _said(script: str | Path) -> str:
    words = ["bash", str(script)] if isinstance(script, Path) else ["bash", "-c", script]
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=True).stdout


def test_commands_of_prerequisites_reach_bash_unchanged_on_the_local_cluster(tmp_path: Path) -> None:
    attempt = attempt_of("a1", tmp_path, "true", protocol=_job(tmp_path))
    assert _said(task_scripts(attempt).before) == SAID


if SOURCE:

    def test_the_recorded_answers_are_those_of_the_code() -> None:
        assert answers(Path(SOURCE)) == recorded()

    def test_commands_of_prerequisites_reach_bash_unchanged_by_the_real_initializer(tmp_path: Path) -> None:
        source = Path(SOURCE, "openpai-runtime", "src")
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(_job(tmp_path)))
        absent, folder = str(tmp_path / "absent"), tmp_path / "runtime"
        folder.mkdir()
        words = [str(tmp_path / "job.yaml"), absent, absent, absent, str(source / "plugins"), str(folder), "main"]
        done = subprocess.run(
            [sys.executable, str(source / "init.d" / "initializer.py"), *words],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert _said(folder / "precommands.sh") == SAID
