# SPDX-License-Identifier: Apache-2.0
"""docs/local-cloud.md, run: the blocks of each section from top to bottom in one shell, after those of "Start"."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.client_environment import CLIENTS, environment
from tests.support.pages import PROJECT, a_desk, as_shell, read_sections, run_typed
from trainyard.engine.build import find_go
from trainyard.engine.progress import Progress

PAGE = PROJECT / "docs" / "local-cloud.md"
# A user's real credentials, which no client may use for the local cloud.
ACCOUNT = """\
[DEFAULT]
user=ocid1.user.oc1..aaaaaaaasomebody
tenancy=ocid1.tenancy.oc1..aaaaaaaacompany
fingerprint=00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff
key_file=~/.oci/key.pem
region=eu-frankfurt-1
"""
PRODUCTION = PROJECT / "docs" / "production.md"
GO_PROGRAM = Path(__file__).parent / "go"
SECTIONS = read_sections(PAGE)
START = "Start"


# Further commands after the blocks of a section, to check its results.
LOOKS: Mapping[str, Sequence[str]] = {
    "ADS": ('sed -n "s/.*main: //p" started.yaml | xargs oci data-science job-run get --job-run-id\n',)
}


def _require_what_ads_images_expect(told: str) -> None:
    overrides = json.loads(told[told.index('{\n  "data"') :])["data"]["job-configuration-override-details"]
    assert overrides["environment-variables"] == {"OCI__MODE": "MAIN", "RANK": "0"}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a user who has the clients, an account in OCI and `trainyard`, but no local cloud."""
    with a_desk(tmp_path, environment(CLIENTS)) as variables:
        account = Path(variables["HOME"], ".oci", "config")
        account.parent.mkdir(mode=0o700)
        account.write_text(ACCOUNT)
        account.chmod(0o600)
        yield variables


@pytest.mark.parametrize("section", [name for name, blocks in SECTIONS.items() if blocks and name != START])
def test_the_commands_of_a_section_succeed(section: str, desk: dict[str, str], tmp_path: Path) -> None:
    blocks = [*SECTIONS[START], *SECTIONS[section]]
    told = run_typed("\n".join([*map(as_shell, blocks), *LOOKS.get(section, ())]), desk, tmp_path / "work")
    if section == "ADS":
        _require_what_ads_images_expect(told)
    (account,) = Path(desk["HOME"]).glob(".oci/*")
    assert account.read_text() == ACCOUNT, "somebody's own settings were written to"
    log = (tmp_path / "trainyard" / "cloud" / "server.log").read_text()
    assert not re.findall(r"not implemented: \w+", log), "a client asks for what the local cloud lacks"


def test_a_passphrase_is_stored_in_a_vault_and_read_again(desk: dict[str, str], tmp_path: Path) -> None:
    ocids = "".join(f"{kind}=ocid1.{kind}.oc1.iad.example.aaaaaaaaexample\n" for kind in ("vault", "key"))
    place = "compartment=$(oci iam compartment list --query 'data[0].id' --raw-output)\n"
    start, shown = (
        map(as_shell, blocks) for blocks in (SECTIONS[START], read_sections(PRODUCTION)["The key of the secrets"])
    )
    told = 'printf "%s" "$PULUMI_CONFIG_PASSPHRASE" | base64 -d | wc -c'
    told = run_typed("\n".join([*start, ocids, place, *shown, told]), desk, tmp_path / "work")
    assert told.split()[-1] == "32", "the random bytes of the passphrase"


def test_the_go_sdk_program_of_the_page_works(desk: dict[str, str], tmp_path: Path) -> None:
    (shown,) = SECTIONS["Go SDK"]
    program = (GO_PROGRAM / "main.go").read_text()
    assert shown.text.removeprefix("// main.go\n") == program.removeprefix("// SPDX-License-Identifier: Apache-2.0\n")
    own = tmp_path / "go"
    try:
        go = find_go(own, os.environ, Progress())
        # With the tester's own home, because Go has its caches there.
        built = [go, "build", "-mod=readonly", "-trimpath", "-o", str(tmp_path / "client"), "."]
        subprocess.run(built, cwd=GO_PROGRAM, check=True, env={**os.environ, "GOWORK": "off"}, timeout=1800)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    start = "\n".join(map(as_shell, SECTIONS[START]))
    told = run_typed(f"{start}\n{shlex.quote(str(tmp_path / 'client'))}", desk, tmp_path / "work")
    assert told.splitlines()[-1] == "trainyardlocal"
