# SPDX-License-Identifier: Apache-2.0
"""OpenPAI's checks that have no broken file, and keys of other platforms in a stack file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.tables import table
from components.openpai.stack import OpenPaiStack
from schemas.checks.access_checks import not_deployed
from schemas.judge import Judged, judge_file
from tests.support.openpai_jobs import judged_stack

TEXT = """\
config:
  trainyard:platform: openpai
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:cluster: { uri: "https://openpai.example.com", user: vision-bot }
  trainyard:skus: { gpu2: { gpus: 2, cpus: 8, memoryGb: 16 } }
  trainyard:storage: { name: vision-nfs }
  trainyard:jobs:
    cifar:
      framework: pytorch
      image: registry.example.com/train:1.0
      shape: gpu2
      roles: { main: 1, worker: 1 }
      command: train.py
      runs: { base: {} }
"""
OTHERS = """\
      cluster: { ami: ami-0a1b2c3d }
  trainyard:access: { users: { group: scientists } }
  trainyard:compartment: ocid1.compartment.oc1..a
  trainyard:vault: { secrets: { token: { secure: "v1:Yk9s:2mVj" } } }
"""


def judged(folder: Path, text: str) -> Judged:
    (folder / "Pulumi.yaml").write_text("name: x\n")
    file = folder / "Pulumi.own.yaml"
    file.write_text(text)
    return judge_file(file)


def test_code_that_does_not_fit_into_a_command(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("")
    with (code / "data.bin").open("wb") as file:
        file.truncate(table("openpai")["largest_code_bytes"] + 1)
    text = TEXT.replace("      runs:", "      code: ./code\n      runs:")
    assert [one.code for one in judged(tmp_path, text).findings] == ["TY883"]
    (code / "data.bin").unlink()
    assert judged(tmp_path, text).findings == ()


def test_keys_of_other_platforms_are_remarks_and_change_nothing(tmp_path: Path) -> None:
    alone, with_others = judged(tmp_path, TEXT), judged(tmp_path, TEXT + OTHERS)
    assert alone.stack == with_others.stack
    assert {(one.code, one.severity) for one in with_others.findings} == {("TY018", "warning")}
    keys = [str(one.path[-1]) for one in with_others.findings]
    assert sorted(keys) == ["cluster", "trainyard:compartment", "trainyard:vault", "users"]
    assert [one.line for one in with_others.findings] == [16, 17, 18, 19]


def test_a_key_that_no_platform_has_at_this_place_is_an_error(tmp_path: Path) -> None:
    found = judged(tmp_path, TEXT + "      ami: ami-0a1b2c3d\n  trainyard:group: scientists\n")
    assert [one.code for one in found.findings] == ["TY010", "TY010"]
    assert found.stack is None


def test_a_platform_without_deployment_says_so(tmp_path: Path) -> None:
    found = judged(tmp_path, TEXT)
    assert found.facts is not None
    assert isinstance(found.stack, OpenPaiStack)
    rows = {name: replace(row, deploys=name != "openpai") for name, row in found.facts.platforms.items()}
    (wrong,) = not_deployed(found.stack, replace(found.facts, platforms=rows))
    assert "does not deploy to it yet" in wrong.message
    assert list(not_deployed(found.stack, found.facts)) == []


@pytest.mark.parametrize(
    ("password", "words"), [("Tom&Jerry", "reads & < >"), ("it's", "reads & < >"), ("=", "only `=`"), ("a=b-c/d+e", "")]
)
def test_a_password_that_the_image_checker_changes(password: str, words: str, tmp_path: Path) -> None:
    """The password is encrypted in the file, so only a preview can check it."""
    auth = {"user": "bot", "password": {"secure": password}}
    findings = judged_stack(tmp_path, {"image": "team/train:1.0", "imageAuth": auth}).findings
    assert [one.code for one in findings] == (["TY879"] if words else [])
    assert all(words in one.message and password not in one.remedy for one in findings)


@pytest.mark.parametrize(
    ("image", "auth"),
    [
        ("team/train:1.0", {}), ("team/train:1.0", {"registry": "docker.io"}),
        ("team/train:1.0", {"registry": "https://index.docker.io/v1/"}),
        ("registry.example.com:5000/team/train_x-y.z:1.0-rc_2", {"registry": "registry.example.com:5000"}),
    ],
)  # fmt: skip
def test_images_and_registries_that_the_image_checker_takes(image: str, auth: dict[str, str], tmp_path: Path) -> None:
    given = {"user": "bot", "password": {"secure": "0123456789"}, **auth}
    assert judged_stack(tmp_path, {"image": image, "imageAuth": given}).findings == ()


def test_remedies_suggest_no_digest(tmp_path: Path) -> None:
    for image in ("not an image", "registry.example.com/train:latest"):
        (found,) = judged_stack(tmp_path, {"image": image}).findings
        assert "digest" not in found.remedy
        assert "sha256" not in found.remedy
