# SPDX-License-Identifier: Apache-2.0
"""A repository with a stack of each platform, a commit that changes them, and the page that shows their reviews.

`python -m tests.support.review_examples` writes the examples of docs/review.md again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.examples import STACKS

OCI, AWS, PAI = "oci-pytorch-ddp", "aws-dl1-resnet", "openpai-ddp-nccl"
CIPHERTEXT = "v1:d2lkZWx5LXJlYWQ=:c2VjcmV0LW9mLXRoZS10ZWFt"
PAGE = STACKS.parent / "docs" / "review.md"
Config = dict[str, Any]


def _oci(config: Config) -> None:
    config["trainyard:network"]["nat"] = True
    job = config["trainyard:jobs"]["resnet"]
    job["ports"]["data"] = "29500-29663"
    job["blockStorageGb"] = 400
    job["inputs"].append({"bucket": "company-pictures", "mount": "/data/more"})


def _aws(config: Config) -> None:
    config["trainyard:network"]["nat"] = True
    config["trainyard:bucket"]["key"] = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-4222-8333-0a1b2c3d4e5f"
    config["trainyard:jobs"]["resnet"]["blockStorageGb"] = 600


def _openpai(config: Config) -> None:
    config["trainyard:jobs"]["cifar10"]["command"] = "ddp.py --backend nccl --epochs 3"


# Changes a rule, a statement and a job, as far as the platform has them.
CHANGES: Mapping[str, Callable[[Config], None]] = {OCI: _oci, AWS: _aws, PAI: _openpai}


def git(folder: Path, *words: str) -> None:
    options = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *options, *words], check=True, capture_output=True)


def edit(folder: Path, name: str, change: Callable[[Config], Any]) -> None:
    file = folder / "stacks" / f"Pulumi.{name}.yaml"
    document = yaml.safe_load(file.read_text("utf-8"))
    change(document["config"])
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")


def make_repository(folder: Path) -> None:
    """Makes a team's repository with two commits."""
    (folder / "stacks").mkdir()
    shutil.copytree(STACKS / "examples", folder / "stacks" / "examples")
    for name in CHANGES:
        shutil.copy(STACKS / f"Pulumi.{name}.yaml", folder / "stacks")
    edit(folder, PAI, lambda config: config["trainyard:cluster"].update(token={"secure": CIPHERTEXT}))
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "before")


def commit_changes(folder: Path) -> None:
    for name, change in CHANGES.items():
        edit(folder, name, change)
    git(folder, "commit", "-qam", "after")


def review(folder: Path, *words: str, code: int = 0) -> str:
    """The output of the command: stdout, or stderr if it fails."""
    command = [sys.executable, "-m", "trainyard", "review", "--stacks", str(folder / "stacks"), "--on", "2026-11-26"]
    done = subprocess.run([*command, *words], cwd=STACKS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code == 2 else done.stdout


def page_with(page: str, folder: Path) -> str:
    """The page with each example replaced by the command's current output."""

    def example(found: re.Match[str]) -> str:
        return f"{found[1]}\n```text\n{review(folder, found[2], '--against', 'HEAD~1')}```\n"

    return re.sub(r"(<!-- example: (\S+) -->)\n```text\n.*?```\n", example, page, flags=re.DOTALL)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        make_repository(Path(place))
        commit_changes(Path(place))
        PAGE.write_text(page_with(PAGE.read_text("utf-8"), Path(place)), "utf-8")


if __name__ == "__main__":
    main()
