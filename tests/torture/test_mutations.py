# SPDX-License-Identifier: Apache-2.0
"""Mutated stack files give findings, never a traceback. TRAINYARD_TORTURE=<count> runs more of them."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from catalog import frameworks
from components.plan import show
from components.plan.build import plan_of
from schemas.across_stacks import check_together
from schemas.judge import Judged, judge_file
from tests.support.broken_files import FOLDER
from tests.support.counts import FIRST, wanted
from tests.torture.mutate import of_text, of_values
from trainyard.cli.render import RENDERERS

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), *sorted(FOLDER.glob("*.yaml"))]
COUNT = wanted(sample=200, full=20000)
PORTION = 50


def sound(judged: Judged) -> None:
    """The property of any file: it gives a stack or errors, and findings with all their parts."""
    assert judged.stack is not None or judged.errors
    lines = len(re.findall("\r\n|[\r\n\x85\u2028\u2029]", judged.source.text)) + 1
    for finding in judged.findings:
        assert finding.message
        assert finding.remedy
        assert 0 <= finding.line <= lines + 1
    for render in RENDERERS.values():
        assert render([judged], True)


@pytest.mark.parametrize("portion", range(0, COUNT, PORTION))
def test_mutated_files_give_findings_and_never_a_traceback(portion: int, tmp_path: Path) -> None:
    found = 0
    seeds = range(FIRST + portion, FIRST + min(portion + PORTION, COUNT))
    for seed in seeds:
        random = Random(seed)
        origin = random.choice(FILES)
        judged = judge_file(origin)
        data = judged.source.data
        mutated = of_values(random, data) if data and random.random() < 0.5 else of_text(random, judged.source.text)
        file = tmp_path / "Pulumi.mutated.yaml"
        file.write_text(mutated, "utf-8", errors="surrogatepass")
        result = judge_file(file)
        sound(result)
        sound(check_together([judged, result])[1])
        found += bool(result.findings)
    assert found > len(seeds) // 4


STACK = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: lab
  trainyard:environment: dev
  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaacompany
  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaavision
  trainyard:access: {{ users: {{ group: scientists }} }}
  trainyard:frameworks: {{ own: own.toml }}
  trainyard:network: {{ frameworks: [own] }}
  trainyard:jobs:
    one:
      framework: own
      image: ${{registry}}:1.0
      shape: VM.GPU.A10.1
      roles: {{ {roles} }}
      command: train.py
      runs: {{ base: {{}} }}
"""


def write_own(folder: Path, name: str, text: str) -> Path:
    (folder / "own.toml").write_text(text.replace(f'name = "{name}"', 'name = "own"', 1), "utf-8", "surrogatepass")
    roles = ", ".join(f"{role}: {max(1, row.minimum)}" for role, row in frameworks.framework_row(name).roles.items())
    file = folder / "Pulumi.own.yaml"
    file.write_text(STACK.format(roles=roles))
    return file


@pytest.mark.parametrize("name", frameworks.framework_names())
def test_a_built_in_framework_also_works_as_a_teams_own(name: str, tmp_path: Path) -> None:
    text = (frameworks.HERE / f"{name}.toml").read_text("utf-8")
    if name == "tensorflow":
        text = text.replace("{tf_config}", "{role}")  # Only TensorFlow's launcher knows this placeholder.
    assert judge_file(write_own(tmp_path, name, text)).errors == ()


@pytest.mark.parametrize("portion", range(0, COUNT, PORTION))
def test_mutated_frameworks_give_findings_or_a_plan_and_never_a_traceback(portion: int, tmp_path: Path) -> None:
    found = 0
    seeds = range(FIRST + portion, FIRST + min(portion + PORTION, COUNT))
    for seed in seeds:
        random = Random(seed)
        name = random.choice(frameworks.framework_names())
        mutated = of_text(random, (frameworks.HERE / f"{name}.toml").read_text("utf-8"))
        result = judge_file(write_own(tmp_path, name, mutated))
        sound(result)
        found += bool(result.findings)
        if not result.errors:
            assert show.plan_text(plan_of(result))
    assert found > len(seeds) // 4
