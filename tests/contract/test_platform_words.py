# SPDX-License-Identifier: Apache-2.0
"""Modules that all platforms share name no platform, and a platform's plan uses no words of another one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema.validators import Draft202012Validator

from catalog.platforms import platform_folder, platform_word, platforms
from schemas.compose import schema_of

ROOT = Path(__file__).resolve().parents[2]
# Folders that all platforms share. In two of them, each platform has a subfolder.
ROOMS = (
    "schemas",
    "components",
    "launcher",
    "provider",
    "trainyard/doctor",
    "trainyard/files",
    "trainyard/images",
    "trainyard/local",
    "trainyard/rehearsal",
    "trainyard/review",
    "trainyard/runs",
    "trainyard/why",
    "catalog",
    "localcloud/console",
    "localcloud/server",
)
NAMES = re.compile(
    r"\b(?:oci|ocir?|ocids?|oracle|aws|amazon|openpai)\b|oracle|tenancy|compartment|dynamic.group", re.IGNORECASE
)
# Words that other platforms must not use.
OF_OCI = re.compile(r"\bOCI|OCI__|\bOracle|[Cc]ompartment|[Tt]enancy|[Dd]ynamic group|\bocid1\b|ocir\.io")
# S3 is Amazon's store, which two platforms have.
FOLDERS = {*(platform_folder(name) for name in platforms()), "aws_dl1", "s3"}
ALLOWED = {
    # The launcher ships alone and has its own rows. A launch document names the source of peers.
    "launcher/platforms.py", "schemas/launch.schema.json",
    # A local cloud implements all platforms at once.
    "components/platform/calls.py",
    # Some tags exist on one platform only. A stack file may set none of them, whatever its platform.
    "catalog/reason_tags.py",
    # Some kinds of faults exist on one platform only, and their descriptions say so.
    "localcloud/server/faults.py",
}  # fmt: skip
STACKS = {
    "aws-dl1": """\
config:
  aws:region: us-east-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: aws-dl1
  trainyard:account: "123456789012"
  trainyard:access: { users: { group: vision-scientists } }
  trainyard:jobs: &jobs
    resnet:
      framework: pytorch
      image: ${registry}:1.0
      shape: dl1.24xlarge
      roles: { main: 1, worker: 3 }
      code: { git: { url: https://git.example.com/vision/train.git, commit: 9f2c1e7 } }
      command: train.py --epochs 10
      runs: { base: {}, tuned: { args: [--lr, "0.1"], attempt: 2 } }
      cluster: { ami: ami-0a1b2c3d }
  trainyard:network: { nat: true, ingress: [{ cidr: 203.0.113.0/24, ports: 3022, why: SSH }] }
""",
    "openpai": """\
config:
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:platform: openpai
  trainyard:cluster: { uri: "https://openpai.example.com", user: vision-bot }
  trainyard:skus: { gpu2: { gpus: 2, cpus: 8, memoryGb: 16 } }
  trainyard:storage: { name: vision-nfs }
  trainyard:registry: { existing: registry.example.com/vision/train }
  trainyard:jobs:
    resnet:
      framework: pytorch
      image: ${registry}:1.0
      shape: gpu2
      roles: { main: 1, worker: 3 }
      command: train.py --epochs 10
      runs: { base: {} }
""",
}


def stack_of(platform: str) -> str:
    """A stack file of this platform: the one above, or the examples of its schema."""
    if platform in STACKS:
        return STACKS[platform]
    config = schema_of(platform)["properties"]["config"]["examples"][0]
    keys = schema_of(platform)["$defs"]["config"]["properties"]
    return json.dumps({"config": {**config, "trainyard:jobs": keys["trainyard:jobs"]["examples"][0]}})


def neutral_files() -> Iterator[Path]:
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*")):
            inside = file.relative_to(ROOT / room)
            own = {*inside.parts[:-1], inside.stem} & FOLDERS
            told = file.suffix in (".py", ".json", ".js", ".html") and file.name != "stack.schema.json"
            if told and not own and str(file.relative_to(ROOT)) not in ALLOWED:
                yield file


@pytest.mark.parametrize("file", list(neutral_files()), ids=lambda file: str(file.relative_to(ROOT)))
def test_a_shared_room_names_no_platform(file: Path) -> None:
    named = [
        f"{number}: {line.strip()}"
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1)
        if NAMES.search(line)
    ]
    assert not named, "move it into the platform's folder, or say it for all platforms"


def trainyard(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", *words], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("platform", sorted(set(platforms()) - {"oci"}))
def test_a_platforms_plan_and_access_use_no_terms_of_another(platform: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: words\n")
    file = tmp_path / "Pulumi.words.yaml"
    file.write_text(stack_of(platform))
    texts = [trainyard(words, str(file), *form) for words in ("plan", "access") for form in ((), ("--format", "json"))]
    plan = json.loads(texts[1][texts[1].index("{") : texts[1].rindex("}") + 1])
    validator = Draft202012Validator(json.loads((ROOT / "schemas/launch.schema.json").read_text("utf-8")))
    for job in plan["jobs"].values():
        for run in job["runs"].values():
            texts += [json.dumps(node["launch"]) for node in run["nodes"]]
            for node in run["nodes"]:
                validator.validate(node["launch"])
    assert not [found for text in texts for found in OF_OCI.findall(text)]
    assert platform_word(platform) in texts[0]
