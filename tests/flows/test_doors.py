# SPDX-License-Identifier: Apache-2.0
"""Our loading of a stack file, compared with the real engine's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from schemas.load import load_config, load_file
from schemas.model import Secret
from schemas.scalars import within_64_bits
from schemas.source import parse_source
from trainyard.engine.obtain import local_stack_environment

pytestmark = pytest.mark.engine
# Plain scalars on which readers of YAML differ.
SCALARS = """
    yes on True FALSE ~ 007 08 0o17 0x1F 0b101 1_000 -5 +7 1e3 .5 1.50 12:30 1.2.3 8700-8800 0.1 1e999 null Null
    18446744073709551615 9223372036854775808 -0o7 -0b1 0x 0b2 1__0 _1 +.5 5. 1e-7 100000000000000000000000
""".split()  # noqa: SIM905


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = local_stack_environment(root / "home")
        (root / "stacks").mkdir()
        (root / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\nstackConfigDir: stacks\n")
        self.file = root / "stacks" / "Pulumi.dev.yaml"
        self.pulumi("stack", "init", "dev")

    def pulumi(self, *words: str) -> str:
        words = (*words, "--non-interactive")
        done = subprocess.run(["pulumi", *words], cwd=self.root, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def add(self, config: str) -> None:
        """Pulumi's own lines are kept: they hold the salt of the stack's secrets."""
        self.file.write_text(self.file.read_text() + f"config:\n{config}")

    def config(self) -> tuple[dict[str, str], list[str]]:
        """As a program gets it."""
        answer = json.loads(self.pulumi("config", "--json", "--show-secrets", "--stack", "dev"))
        return {key: one["value"] for key, one in answer.items()}, [key for key, one in answer.items() if one["secret"]]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_plain_scalars_have_the_values_that_the_engine_reads(project: Project) -> None:
    text = "".join(f"    - {scalar}\n" for scalar in SCALARS)
    project.add(f"  other:values:\n{text}")
    ours = parse_source(f"values:\n{text}").data["values"]
    theirs = json.loads(project.config()[0]["other:values"], parse_int=lambda text: within_64_bits(int(text)))
    assert list(zip(SCALARS, ours, strict=True)) == list(zip(SCALARS, theirs, strict=True))


def test_the_file_and_pulumis_configuration_load_the_same_stack(project: Project) -> None:
    project.add(
        "  oci:region: us-ashburn-1\n"
        "  trainyard:team: vision\n"
        "  trainyard:environment: dev\n"
        "  trainyard:jobs:\n"
        "    resnet: { framework: pytorch, image: '${registry}:1', shape: VM.GPU.A10.1, roles: { main: 1 },"
        " command: a.py,"
        " options: { processes: 2 }, ports: { data: 29500-29600 }, env: { PLAIN: 'yes' }, runs: { base: {} } }\n"
    )
    for path in ("trainyard:jobs.resnet.env.TOKEN", "trainyard:jobs.resnet.runs.base.env.SEED"):
        project.pulumi("config", "set", "--secret", "--path", path, "sesame", "--stack", "dev")
    values, secret = project.config()
    assert secret == ["trainyard:jobs"]
    by_config, by_file = load_config(values, secret, "dev", project.file), load_file(project.file)
    assert by_config.findings == by_file.findings == ()
    assert by_config.stack is not None
    assert by_config.stack == by_file.stack
    job = by_config.stack.jobs["resnet"]
    assert job.env["PLAIN"] == "yes"
    assert isinstance(job.env["TOKEN"], Secret)
    assert job.env["TOKEN"].value == "sesame"
