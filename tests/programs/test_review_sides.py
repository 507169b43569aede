# SPDX-License-Identifier: Apache-2.0
"""`trainyard review` if the sides of a change cannot be compared: another platform or region, a broken file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.review_examples import AWS, OCI, PAI, Config, edit, git, make_repository, review
from trainyard.review.revisions import CHECKOUT


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path)
    return tmp_path


def file_of(repository: Path, name: str) -> Path:
    return repository / "stacks" / f"Pulumi.{name}.yaml"


def reviewed(repository: Path, name: str, *words: str) -> Config:
    text = review(repository, name, "--against", "HEAD", "--format", "json", *words)
    (found,) = json.loads(text)["reviews"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("was", "becomes"), [(OCI, AWS), (AWS, PAI), (PAI, OCI)])
def test_a_changed_platform_loses_the_old_platforms_resources(was: str, becomes: str, repository: Path) -> None:
    shutil.copy(file_of(repository, becomes), file_of(repository, was))
    found = reviewed(repository, was)
    assert "cannot move to" in found["refused"]
    gone = [one for one in found["changes"] if one["kind"] == "deleted"]
    assert any(one["loss"] for one in gone), "each platform knows what goes with its own resources"
    if was != PAI:
        assert "blocked" in {one["kind"] for one in found["changes"]}, "its bucket is protected"
        assert found["closed"]
    assert found["gained"]
    assert found["lost"]


@pytest.mark.parametrize(
    ("name", "key", "region"), [(OCI, "oci:region", "eu-frankfurt-1"), (AWS, "aws:region", "us-west-2")]
)
def test_another_region_is_refused_for_a_stack_that_is_up(name: str, key: str, region: str, repository: Path) -> None:
    def change(config: Config) -> None:
        config[key] = region
        config["trainyard:network"].pop("zone", None)

    edit(repository, name, change)
    found = reviewed(repository, name)
    assert "cannot move it to another region" in found["refused"]
    assert "trainyard-against-" not in found["refused"]


def test_another_account_is_refused_for_a_stack_that_is_up(repository: Path) -> None:
    edit(repository, AWS, lambda config: config.update({"trainyard:account": "210987654321"}))
    assert "AWS cannot move it to another one" in reviewed(repository, AWS)["refused"]


def test_a_stack_that_cannot_be_read_before_the_change_never_looks_unchanged(repository: Path) -> None:
    whole = file_of(repository, OCI).read_text("utf-8")
    file_of(repository, OCI).write_text(whole.replace("framework: pytorch", "framework: pytroch"), "utf-8")
    git(repository, "commit", "-qam", "broken")
    file_of(repository, OCI).unlink()
    for kind in ("removed", "changed"):
        found = reviewed(repository, OCI)
        assert (found["kind"], found["judged"], found["decisions"]) == (kind, False, True)
        assert found["verdict"] == f"{OCI}: cannot be compared; 1 warning"
        assert "`pytroch` is not a known framework" in found["warnings"][0]
        file_of(repository, OCI).write_text(whole, "utf-8")


def test_a_finding_that_names_another_file_is_not_new_on_each_review(repository: Path) -> None:
    shutil.copy(file_of(repository, OCI), file_of(repository, "again"))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "two that make the same things")
    assert reviewed(repository, OCI)["verdict"] == f"{OCI}: nothing to decide"


def test_a_program_that_exits_does_not_end_the_recording(tmp_path: Path) -> None:
    """The code of a revision may do this, and cannot be fixed any more."""
    wrapper = tmp_path / "wrapper.py"
    for end, said in (("sys.exit(3)", "SystemExit: 3"), ("os._exit(3)", "it exited with 3")):
        wrapper.write_text(
            "import os, sys\nfrom trainyard.review import record\n"
            f"record.record_program = lambda request: {end}\nrecord.main()\n",
            "utf-8",
        )
        done = subprocess.run(
            [sys.executable, str(wrapper)], input="{}\n{}\n", cwd=CHECKOUT, capture_output=True, text=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        )  # fmt: skip
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == 2, done.stderr
        assert all(said in one["error"] for one in answers)


def test_a_new_waiver_is_something_to_decide(repository: Path) -> None:
    waived = {"mutable-tags": {"reason": "one experiment", "until": "2026-12-31"}}
    edit(repository, OCI, lambda config: config.update({"trainyard:waivers": waived}))
    found = reviewed(repository, OCI)
    assert found["decisions"]
    assert found["verdict"] == f"{OCI}: 1 setting of who acts or reviews, 1 of the policy pack waived"
    assert "waived until 2026-12-31: one experiment" in review(repository, OCI, "--against", "HEAD")
