# SPDX-License-Identifier: Apache-2.0
"""The variables that ADS itself gives to each node of the jobs in tests/bring/ads: `python -m tests.support.ads_answers
PROGRAM` asks an `ads` of this release, by a dry run, and writes the answers to tests/contract/recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.bringing import BRING, HOME

VERSION = "2.16.1"
RECORDED = Path(__file__).parents[1] / "contract" / "recorded" / f"ads-{VERSION}.json"
JOBS = [file for file in sorted((BRING / "ads").glob("*.yaml")) if "unknown" not in file.name]
_MORE = ("+" * 80, "~" * 80)


def asked_ads(program: str, file: Path, home: Path) -> Sequence[Mapping[str, str]]:
    """The variables of each node, in the order in which ADS starts them."""
    done = subprocess.run(
        [
            program, "opctl", "run", "--file", str(file), "--dry-run", "--nobuild", "--auth", "api_key",
            "--oci-config", str(home / ".oci" / "config"), "--oci-profile", "DEFAULT",
        ],
        cwd=home, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    payload, _, runs = done.stdout.partition("Creating Job with payload:")[2].partition(_MORE[0])
    shared = {item["name"]: item["value"] for item in yaml.safe_load(payload)["spec"]["runtime"]["spec"]["env"]}
    nodes: list[dict[str, str]] = []
    for line in runs.splitlines():
        if line.startswith("Name: "):
            nodes.append(dict(shared))
        elif line.startswith("\t"):
            name, _, value = line.strip("\t").partition(":")
            nodes[-1][name] = value
    return nodes


def recorded_answers() -> Mapping[str, Sequence[Mapping[str, str]]]:
    answers: Mapping[str, Sequence[Mapping[str, str]]] = json.loads(RECORDED.read_text("utf-8"))
    return answers


def main(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / ".oci").mkdir()
        (home / ".oci" / "config").write_text((HOME / ".oci" / "config").read_text("utf-8"), "utf-8")
        key = rsa.generate_private_key(65537, 2048)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        (home / ".oci" / "key.pem").write_bytes(
            key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        )
        answers = {}
        for file in JOBS:
            # It keeps the tag of the last image in this file.
            (home / "config.ini").unlink(missing_ok=True)
            answers[file.name] = asked_ads(program, file, home)
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
