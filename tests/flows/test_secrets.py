# SPDX-License-Identifier: Apache-2.0
"""A secret in every possible place of a stack file, and a search for it in everything that Pulumi and the local cloud
write."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.local_team import LONGEST_SECONDS, ROOT, SEALED, Team

pytestmark = pytest.mark.engine

# The script proves that it got each secret, and can read the one in the vault, without printing them.
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
SALT_OF_ANOTHER = "v1:hnmGmNSahig=:v1:moBwenL+GEgQdKjz:jQFHq8dV/48fS9qr938g8SB4gveqew=="
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
    """The digests of the secrets that the run got."""
    return {hashlib.sha256(text.encode()).hexdigest(): text for text in team.opened()}


def test_no_secret_appears_in_any_output_or_log(team: Team) -> None:
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
        team.run("plan", str(team.file)).stdout,
        team.run("access", str(team.file)).stdout,
        team.on_stack("refresh", "--yes", "--skip-preview", "--diff"),
    ]
    team.change("OF_RUN:", "OF_RUN_TOO: x\n            OF_RUN:")
    said.append(team.trainyard("up", "local", "--diff"))
    written = [path for place in ("pulumi", "bin") for path in (team.home / place).rglob("*") if path.is_file()]
    written += [team.home / "cloud" / "server.log", *(team.home / "cloud" / "runs").rglob("*.log")]
    assert any(path.name == "local.json" for path in written), "the state is among what is searched"
    for value in values.values():
        assert not [path for path in written if value.encode() in path.read_bytes()]
        assert not [text for text in said if value in text]
    assert "Nothing is left" in team.trainyard("down", "local")


def set_secret(team: Team, *words: str, value: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Where no pulumi is on PATH, as `make setup` leaves it."""
    path = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not Path(folder, "pulumi").exists()
    )
    return subprocess.run(
        [sys.executable, "-m", "trainyard", "secret", "set", "local", *words, "--stacks", str(team.stacks)], cwd=ROOT,
        env={**os.environ, "TRAINYARD_HOME": str(team.home), "PATH": path, **env}, input=value, capture_output=True,
        text=True, timeout=LONGEST_SECONDS,
    )  # fmt: skip


def test_a_secret_of_a_local_stack_is_set_and_used(team: Team) -> None:
    """The command in TY502's message corrects the file, and the run gets the value."""
    team.change("      code: ./local", "      # Said once.\n      env: { HF_TOKEN: hf_plain }\n      code: ./local")
    checked = team.run("check", str(team.file)).stdout
    assert f"`trainyard secret set {team.file} 'trainyard:jobs.line.env.HF_TOKEN' --local`" in checked
    done = set_secret(team, "trainyard:jobs.line.env.HF_TOKEN", "--local", value="of: mine\n")
    assert done.returncode == 0, done.stderr
    assert set_secret(team, "jobs.line.runs.base.env.OTHER", "--local", value="other").returncode == 0
    text = team.file.read_text()
    assert "# Said once." in text
    assert "mine" not in text + done.stdout + done.stderr
    written = yaml.safe_load(text)["config"]["trainyard:jobs"]["line"]
    assert set(written["env"]["HF_TOKEN"]) == set(written["runs"]["base"]["env"]["OTHER"]) == {"secure"}
    assert team.run("check", str(team.file)).returncode == 0
    assert "stand-in" not in team.trainyard("preview", "local")
    folder = str(team.home / "pulumi" / "stacks")
    shown = team.pulumi("config", "--show-secrets", "--json", "--stack", "local", "--cwd", folder).stdout
    job = json.loads(shown)["trainyard:jobs"]["objectValue"]["line"]
    assert (job["env"]["HF_TOKEN"], job["runs"]["base"]["env"]["OTHER"]) == ("of: mine", "other")


def test_a_secret_under_another_key_is_refused(team: Team) -> None:
    clean = team.file.read_text()
    plant(team)
    before = team.file.read_text()
    refused = set_secret(team, "jobs.line.env.TOKEN", "--local", value="x")
    assert refused.returncode == 1
    assert "has secrets of another key" in refused.stderr
    missing = set_secret(team, "jobs.lime.env.TOKEN", "--local", value="x")
    assert "did you mean `line`?" in missing.stderr
    assert "the value is empty" in set_secret(team, "jobs.line.env.TOKEN", "--local").stderr
    assert team.file.read_text() == before
    # Plain Pulumi writes a salt into the file even without secrets. It belongs to the stack's key.
    team.file.write_text(f"{clean}\nencryptionsalt: {SALT_OF_ANOTHER}\n")
    assert set_secret(team, "jobs.line.env.TOKEN", "--local", value="x").returncode == 1
    assert "secure" not in team.file.read_text()
    assert "21 to create" in team.trainyard("preview", "local")


@pytest.mark.torture
def test_a_secret_of_a_real_stack_is_set_by_its_own_key(team: Team, tmp_path: Path) -> None:
    """In the user's own backend, whose state nobody else touches."""
    (tmp_path / "state").mkdir()
    own = {"PULUMI_BACKEND_URL": (tmp_path / "state").as_uri(), "PULUMI_CONFIG_PASSPHRASE": "own",
           "PULUMI_HOME": str(tmp_path / "own"), "PULUMI_SKIP_UPDATE_CHECK": "true"}  # fmt: skip
    absent = set_secret(team, "jobs.line.env.TOKEN", value="mine", **own)
    assert absent.returncode == 1
    assert "Traceback" not in absent.stderr
    command = re.search(r"(/\S+/pulumi stack init local)", absent.stderr)
    assert command, absent.stderr
    # Outside of this checkout, because the engine writes the stack's salt beside its project.
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    words = [*command[1].split(), "--non-interactive"]
    subprocess.run(words, cwd=tmp_path, env={**os.environ, **own}, check=True, capture_output=True)
    done = set_secret(team, "jobs.line.env.TOKEN", value="mine", **own)
    assert done.returncode == 0, done.stderr
    assert "v1:" in yaml.safe_load(team.file.read_text())["config"]["trainyard:jobs"]["line"]["env"]["TOKEN"]["secure"]
    # The key is not that of local stacks, so these use a replacement value, as before.
    assert "1 secret of the file replaced by stand-ins" in team.trainyard("preview", "local")
