# SPDX-License-Identifier: Apache-2.0
"""What runs is compared by meaning: another spelling or a new name is no change, and no secret is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.plan.model import RUN_TYPE
from schemas.judge import Judged, judge_file
from tests.support.examples import STACKS
from tests.support.review_examples import OCI, PAI
from tests.support.review_samples import resource, side, whole_review
from trainyard.review.forms import FORMS
from trainyard.review.gates import find_tripped_gates, parse_gates
from trainyard.review.model import Change, RunChange
from trainyard.review.run_items import is_explained_by_what_runs, run_change_sentence, what_runs_items
from trainyard.review.sections import review_verdict
from trainyard.review.what_runs import compare_what_runs, with_what_runs

NOTHING = whole_review()
Edit = Callable[[dict[str, Any]], object]


def _judged(tmp_path: Path, change: Edit, stack: str = OCI) -> Judged:
    document = yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text("utf-8"))
    change(document["config"])
    (tmp_path / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump(document), "utf-8")
    return judge_file(tmp_path / f"Pulumi.{stack}.yaml")


def _sentences(tmp_path: Path, change: Edit, stack: str = OCI, before: Edit = dict) -> list[str]:
    sides = [_judged(tmp_path, edit, stack) for edit in (before, lambda config: (before(config), change(config)))]
    return [run_change_sentence(found) for found in compare_what_runs(*sides)]


def _rename(config: dict[str, Any]) -> None:
    job = config["trainyard:jobs"].pop("resnet")
    job["was"] = "resnet"
    job["runs"]["first"] = {**job["runs"].pop("base"), "was": "base"}
    job["roles"] = {"main": job["roles"]["main"], "worker": job["roles"]["worker"]}
    config["trainyard:jobs"]["vision"] = job


@pytest.mark.parametrize(
    "change",
    [
        lambda config: config["trainyard:jobs"]["resnet"].update(blockStorageGb=100, stallMinutes=30, env={}),
        lambda config: config["trainyard:jobs"]["resnet"].update(shape={"name": "VM.GPU.A10.1"}),
        lambda config: config["trainyard:jobs"]["resnet"]["runs"]["base"].update(attempt=1, until="finished"),
        lambda config: config["trainyard:jobs"]["resnet"].update(
            dict(reversed(config["trainyard:jobs"]["resnet"].items()))
        ),
        _rename,
    ],
    ids=["defaults", "shorthand", "run's defaults", "order", "renamed"],
)
def test_another_spelling_or_a_new_name_changes_nothing(tmp_path: Path, change: Edit) -> None:
    assert _sentences(tmp_path, change) == []


def test_values_are_shown_from_what_to_what_but_secrets_are_not(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    found = _sentences(
        tmp_path,
        lambda config: config["trainyard:jobs"]["resnet"].update(
            command=f"train.py --token {token} --api-key=abcdef123",
            env={"PASSWORD": "hunter2", "PROXY": "http://me:hunter2@proxy.example.com", "MODE": "fast"},
        ),
    )
    assert not any("hunter2" in sentence or token in sentence or "abcdef123" in sentence for sentence in found)
    assert "job resnet: command: train.py --epochs 10 -> train.py --token **** --api-key=****" in found
    assert "job resnet: variable MODE: new: fast" in found
    assert "job resnet: variable PASSWORD: new: (not shown: it looks like a secret)" in found


def test_runs_and_jobs_that_come_and_go_are_named(tmp_path: Path) -> None:
    def change(config: dict[str, Any]) -> None:
        jobs = config["trainyard:jobs"]
        jobs["second"] = {**jobs["resnet"], "runs": {}, "ports": {"rendezvous": 29401, "data": "29600-29663"}}
        jobs["resnet"]["runs"] = {"base": {}, "longer": {"args": ["--epochs", "90"]}}

    found = _sentences(tmp_path, change)
    assert found[:3] == [
        "job resnet: run longer: new",
        "job resnet: run longer: arguments: new: --epochs 90",
        "job resnet: run tuned: gone",
    ]
    assert "job second: new" in found[3] or "job second: job: new" in found[3]
    assert "job second: image: new: ${registry}:1.4 (no digest: what it names can change)" in found


def test_a_password_that_goes_elsewhere_with_the_image_trips_the_gate(tmp_path: Path) -> None:
    auth = {"user": "bot", "password": {"secure": "v1:YQ==:Yg=="}}

    def from_host(host: str) -> Edit:
        return lambda config: config["trainyard:jobs"]["cifar10"].update(image=f"{host}/vision/train:1", imageAuth=auth)

    sides = [_judged(tmp_path, from_host(host), PAI) for host in ("registry.example.com", "evil.example.com")]
    changes = compare_what_runs(*sides)
    assert [change.what for change in changes] == ["image", "registry that gets the password"]
    review = with_what_runs(NOTHING, changes, side(), side())
    reasons = [gate.because for gate in find_tripped_gates([review], parse_gates("access-gain"))]
    assert "job cifar10: registry that gets the password: registry.example.com -> evil.example.com" in reasons


def test_another_git_host_and_another_role_of_the_nodes_are_who_gets_in(tmp_path: Path) -> None:
    def from_host(host: str) -> Edit:
        git = {"url": f"https://{host}/t.git", "secret": "ocid1.vaultsecret.oc1.iad.aaaa"}
        return lambda config: config["trainyard:jobs"]["resnet"].update(code={"git": git})

    def change(config: dict[str, Any]) -> None:
        from_host("evil.example.com")(config)
        config["trainyard:access"].update(existing=True, runs="administrators")

    sides = [_judged(tmp_path, edit) for edit in (from_host("git.example.com"), change)]
    changes = compare_what_runs(*sides)
    assert {run_change_sentence(change): change.lets_in for change in changes} == {
        "rights from outside of the stack, which are not known here: false -> true": True,
        "role or group that the nodes run as: new: administrators": True,
        "job resnet: git address: https://git.example.com/t.git -> https://evil.example.com/t.git": False,
        "job resnet: host that gets the credential for git: git.example.com -> evil.example.com": True,
    }


def test_what_the_program_makes_of_an_unchanged_file_is_compared_by_the_runs_inputs() -> None:
    def run(version: int) -> Any:
        launch = f'{{"version": {version}, "command": ["a", "b"]}}'
        nodes = [{"environment": {"TRAINYARD_LAUNCH": launch}}, {"environment": {"TRAINYARD_LAUNCH": launch}}]
        return side(resource(RUN_TYPE, "resnet/base", {"nodes": nodes, "tags": {"version": version}}))

    review = with_what_runs(NOTHING, (), run(1), run(2))
    assert review.what_runs == (RunChange("resnet", "base", "changed", "version", "1", "2"),)
    said = RunChange("resnet", "", "changed", "image", "a", "b")
    assert with_what_runs(NOTHING, (said,), run(1), run(2)).what_runs == (said,)
    other_run = RunChange("resnet", "tuned", "added", "run")
    assert len(with_what_runs(NOTHING, (other_run,), run(1), run(2)).what_runs) == 2
    replaced = Change("replaced", RUN_TYPE, "resnet/base", "", ("nodes[0].environment.TRAINYARD_LAUNCH",))
    assert is_explained_by_what_runs(review, [replaced])
    assert "what runs changes in 1 job" in review_verdict(review)


def test_jobs_that_change_alike_share_a_line_and_long_texts_show_where_they_differ() -> None:
    changes = [RunChange(job, "", "changed", "command", "x" * 900 + "a", "x" * 900 + "b") for job in ("one", "two")]
    ((words, details, is_urgent),) = what_runs_items(with_what_runs(NOTHING, tuple(changes), side(), side()))
    assert words == f"jobs one, two: command: …{'x' * 60}a -> …{'x' * 60}b"
    assert (details, is_urgent) == ((), True)


def test_a_new_job_is_told_whole_and_folded_where_that_can_be(tmp_path: Path) -> None:
    review = with_what_runs(
        replace(NOTHING, kind="new"), compare_what_runs(None, _judged(tmp_path, dict)), side(), side()
    )
    ((words, details, is_urgent),) = what_runs_items(review)
    assert (words, is_urgent) == ("job resnet: new", False)
    assert {"command: train.py --epochs 10", "run tuned: arguments: --lr 0.05", "nodes of role worker: 3"} <= {*details}
    assert "stallMinutes" not in " ".join(details), "a default says nothing"
    for form in ("markdown", "html"):
        text = FORMS[form]([review], ())
        assert f"<summary>{len(details)} lines</summary>" in text
