# SPDX-License-Identifier: Apache-2.0
"""Images for OpenPAI: a registry of which only the address is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.plan.build import plan_of
from components.plan.model import Plan
from components.platform.images import ImageError, WantedImage, image_platform_of
from schemas.judge import judge_file

FILE = """\
config:
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: openpai
  trainyard:cluster: { uri: "https://pai.example", user: anna }
  trainyard:skus: { cpu: { cpus: 1, memoryGb: 1 }, gpu: { cpus: 1, memoryGb: 1, gpus: 1 } }
  trainyard:storage: { name: results }
  trainyard:registry: { existing: registry.example/vision }
  trainyard:jobs:
    own: { framework: pytorch, image: "${registry}/torch:1.0", shape: gpu, roles: { main: 1 }, command: a.py,
      maximumRuntimeMinutes: 60, imageAuth: { user: puller, password: { secure: sealed } } }
    small: { framework: pytorch, image: "${registry}/torch-cpu:1.0", shape: cpu, roles: { main: 1 }, command: a.py,
      maximumRuntimeMinutes: 60 }
    theirs: { framework: pytorch, image: "openpai/standard:python_3.6-pytorch_1.2.0-gpu", start: plain, shape: gpu,
      roles: { main: 1 }, command: a.py, maximumRuntimeMinutes: 60 }
"""


def _plan(folder: Path) -> Plan:
    file = folder / "Pulumi.vision-dev.yaml"
    file.write_text(FILE)
    judged = judge_file(file)
    assert not [finding for finding in judged.findings if finding.severity == "error"], judged.findings
    return plan_of(judged)


def test_what_has_the_launcher_is_built_for_what_its_sku_has(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    platform = image_platform_of(plan, {})
    images, remarks = platform.wanted_images(plan, "", "", None, True)
    assert [one.address for one in images] == [
        "registry.example/vision/torch:1.0",
        "registry.example/vision/torch-cpu:1.0",
    ]
    assert [platform.recipe(one.jobs[0], None).title for one in images] == ["pytorch, gpu", "pytorch, cpu"]
    assert len(remarks) == 1
    assert "without the launcher" in remarks[0]
    assert [platform.user_of(one) for one in images] == ["puller", "<user>"]


def test_another_registry_may_be_named(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    images, _ = image_platform_of(plan, {}).wanted_images(plan, "", "elsewhere.example/x", "own", True)
    assert [one.address for one in images] == ["elsewhere.example/x/torch:1.0"]
    with pytest.raises(ImageError, match="Remove --namespace"):
        image_platform_of(plan, {}).wanted_images(plan, "acme", "", None, True)


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("unauthorized: authentication required", "does not let you push"),
        ("name unknown: repository vision/torch not found", "has no repository vision/torch"),
        ("dial tcp: lookup registry.example: no such host", "cannot be reached"),
    ],
)
def test_a_failed_push_says_what_to_do(tmp_path: Path, output: str, cause: str) -> None:
    plan = _plan(tmp_path)
    image = WantedImage("registry.example/vision/torch:1.0", ())
    assert cause in str(image_platform_of(plan, {}).explain_failure(output, plan, image, "docker login x"))
