# SPDX-License-Identifier: Apache-2.0
"""A secret in every place where one can stand, searched for wherever Pulumi and the local cloud write for people."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.local_team import SEALED, Team

pytestmark = pytest.mark.engine

# The script proves that it was given each, and may open the one in the vault, without printing any.
SCRIPT = """\
import base64, hashlib, os
import oci

def told(name, value):
    print(name, hashlib.sha256(value).hexdigest())

for name in ("OF_JOB", "OF_RUN"):
    told(name, os.environ[name].encode())
where = dict(entry.split("=", 1) for entry in os.environ["CLIENT_HOST_OVERRIDES"].split(";") if entry)
client = oci.secrets.SecretsClient(
    {}, signer=oci.auth.signers.get_resource_principals_signer(), service_endpoint=where["oci_secrets.SecretsClient"]
)
told("OF_VAULT", base64.b64decode(client.get_secret_bundle(os.environ["WHERE"]).data.secret_bundle_content.content))
"""
VAULT = "ocid1.vault.oc1.iad.bbbbexamplevault.abuwcljrexamplevaultlocal"
KEY = "ocid1.key.oc1.iad.bbbbexamplevault.abuwcljrexamplekeylocal"


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    yield one
    one.end()


def plant(team: Team) -> None:
    written = yaml.safe_load(team.file.read_text())
    config = written["config"]
    config["oci:privateKeyPassword"] = SEALED
    config["trainyard:vault"] = {"vault": VAULT, "key": KEY, "secrets": {"git-token": SEALED}}
    job = config["trainyard:jobs"]["line"]
    job |= {"command": "train.py", "env": {"OF_JOB": SEALED, "WHERE": "${secret.git-token}"}}
    job["runs"]["base"]["env"] = {"OF_RUN": SEALED}
    team.file.write_text(yaml.safe_dump(written, sort_keys=False))
    (team.stacks / "local" / "train.py").write_text(SCRIPT)


def stand_ins(team: Team) -> dict[str, str]:
    """The values by their digests, as the run that was given them tells."""
    return {hashlib.sha256(text.encode()).hexdigest(): text for text in team.opened()}


def test_no_secret_is_written_where_people_read(team: Team) -> None:
    plant(team)
    said = [team.trainyard("up", "local")]
    assert "3 secrets of the file replaced by stand-ins" in said[0]
    values = stand_ins(team)
    assert len(values) == 3
    told = re.findall(r"OF_(?:JOB|RUN|VAULT) ([0-9a-f]{64})", said[0])
    assert len(told) == 3
    assert set(told) <= set(values), "the run was given what the configuration holds, and opened what the vault does"

    said += [
        team.trainyard("preview", "local", "--diff", "--json"),
        team.trainyard("preview", "local", "--diff", "--expect-no-changes"),
        team.run("plan", str(team.file)).stdout,
        team.run("access", str(team.file)).stdout,
        team.on_stack("refresh", "--yes", "--skip-preview", "--diff"),
    ]
    team.change("OF_RUN:", "OF_RUN_TOO: x\n            OF_RUN:")
    said += [team.trainyard("preview", "local", "--diff"), team.trainyard("up", "local", "--diff")]
    written = [path for place in ("pulumi", "bin") for path in (team.home / place).rglob("*") if path.is_file()]
    written += [team.home / "cloud" / "server.log", *(team.home / "cloud" / "runs").rglob("*.log")]
    assert any(path.name == "local.json" for path in written), "the state is among what is searched"
    for value in values.values():
        assert not [path for path in written if value.encode() in path.read_bytes()]
        assert not [text for text in said if value in text]
    assert "Nothing is left" in team.trainyard("down", "local")
