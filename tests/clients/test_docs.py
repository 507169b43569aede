# SPDX-License-Identifier: Apache-2.0
"""docs/local-cloud.md, run: the blocks of each section from top to bottom in one shell, after those of "Start"."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.build import find_go
from engine.progress import Progress
from localcloud import control
from tests.support.client_environment import CLIENTS, environment

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "local-cloud.md"
PRODUCTION = PROJECT / "docs" / "production.md"
GO_PROGRAM = Path(__file__).parent / "go"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"(?:#|//) ([\w.]+)\n")


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def _sections(page: Path) -> dict[str, list[Block]]:
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return {
        name: [Block(*found) for found in _BLOCK.findall(text)]
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


SECTIONS = _sections(PAGE)
START = "Start"


def _as_shell(block: Block) -> str:
    """What a reader does with a block: types it, runs it, or saves it under the name that it begins with."""
    if block.language == "sh":
        return block.text
    if block.language == "python":
        return f"python - <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"
    name = _FILE_NAME.match(block.text)
    assert name, f"a {block.language} block that begins with no file name"
    return f"cat >{shlex.quote(name[1])} <<'END OF BLOCK'\n{block.text}END OF BLOCK\n"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of someone who has the clients and `trainyard`, an empty home, and no local cloud yet."""
    home = tmp_path / "home"
    commands = tmp_path / "commands"
    (tmp_path / "work").mkdir()
    for folder in (home, commands):
        folder.mkdir()
    trainyard = commands / "trainyard"
    trainyard.write_text(f'#!/bin/sh\nPYTHONPATH={PROJECT} exec {sys.executable} -P -m cli "$@"\n')
    trainyard.chmod(0o755)
    path = os.pathsep.join([str(commands), str(environment(CLIENTS)), os.environ.get("PATH", os.defpath)])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OCI_", "TF_VAR_"))}
    env = {**kept, "PATH": path, "HOME": str(home), "TRAINYARD_HOME": str(tmp_path / "trainyard")}
    try:
        yield env
    finally:
        control.stop(tmp_path / "trainyard" / "cloud")


def _run(text: str, env: dict[str, str], folder: Path) -> str:
    script = f"set -euo pipefail\n{text}"
    told = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=1800, check=False
    )
    assert told.returncode == 0, f"{told.stdout[-3000:]}\n{told.stderr[-3000:]}"
    return told.stdout


@pytest.mark.parametrize("section", [name for name, blocks in SECTIONS.items() if blocks and name != START])
def test_a_section_does_what_it_says(section: str, desk: dict[str, str], tmp_path: Path) -> None:
    blocks = [*SECTIONS[START], *SECTIONS[section]]
    _run("\n".join(map(_as_shell, blocks)), desk, tmp_path / "work")
    assert not list(Path(desk["HOME"]).glob(".oci/*")), "somebody's own settings were written to"
    log = (tmp_path / "trainyard" / "cloud" / "server.log").read_text()
    assert not re.findall(r"not implemented: \w+", log), "a client asks for what the local cloud lacks"


def test_a_run_that_ads_started_gets_what_ads_images_expect(desk: dict[str, str], tmp_path: Path) -> None:
    blocks = [*SECTIONS[START], *(block for block in SECTIONS["ADS"] if block.language != "python")]
    read = 'sed -n "s/.*main: //p" started.yaml | xargs oci data-science job-run get --job-run-id\n'
    told = _run("\n".join([*map(_as_shell, blocks), read]), desk, tmp_path / "work")
    overrides = json.loads(told[told.index('{\n  "data"') :])["data"]["job-configuration-override-details"]
    assert overrides["environment-variables"] == {"OCI__MODE": "MAIN", "RANK": "0"}


def test_a_passphrase_is_kept_in_a_vault_and_read_back(desk: dict[str, str], tmp_path: Path) -> None:
    ocids = "".join(f"{kind}=ocid1.{kind}.oc1.iad.example.aaaaaaaaexample\n" for kind in ("vault", "key"))
    place = "compartment=$(oci iam compartment list --query 'data[0].id' --raw-output)\n"
    start, shown = (
        map(_as_shell, blocks) for blocks in (SECTIONS[START], _sections(PRODUCTION)["The key of the secrets"])
    )
    told = 'printf "%s" "$PULUMI_CONFIG_PASSPHRASE" | base64 -d | wc -c'
    told = _run("\n".join([*start, ocids, place, *shown, told]), desk, tmp_path / "work")
    assert told.split()[-1] == "32", "the random bytes of the passphrase"


def test_the_go_sdk(desk: dict[str, str], tmp_path: Path) -> None:
    (shown,) = SECTIONS["Go SDK"]
    program = (GO_PROGRAM / "main.go").read_text()
    assert shown.text.removeprefix("// main.go\n") == program.removeprefix("// SPDX-License-Identifier: Apache-2.0\n")
    own = tmp_path / "go"
    try:
        go = find_go(own, os.environ, Progress())
        # With the tester's own home, where Go keeps what it has downloaded and compiled.
        built = [go, "build", "-mod=readonly", "-trimpath", "-o", str(tmp_path / "client"), "."]
        subprocess.run(built, cwd=GO_PROGRAM, check=True, env={**os.environ, "GOWORK": "off"}, timeout=1800)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    start = "\n".join(map(_as_shell, SECTIONS[START]))
    told = _run(f"{start}\n{shlex.quote(str(tmp_path / 'client'))}", desk, tmp_path / "work")
    assert told.splitlines()[-1] == "trainyardlocal"
