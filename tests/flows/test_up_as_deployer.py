# SPDX-License-Identifier: Apache-2.0
"""The deployer's printed policy is enough for `up` and `destroy`, and none of its statements can be left out.

A separate user with their own key has only the statements that `trainyard access` prints. Pulumi runs as that user, on
the real engine.
"""

import configparser
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oci
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from components.oci.deployer import DRIFT, deployer_lines
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import permissions_of_grant
from components.oci.local.stacks import ready_images
from components.oci.plan import OciPlan
from localcloud.oci.tenancy import private_pem
from schemas.facts import gather_facts
from schemas.load import load_file
from tests.support.cloud_fixture import Clients
from tests.support.counts import FIRST, wanted
from tests.support.local_team import LONGEST_SECONDS, ONE_NODE, ROOT, Team, summary
from tests.support.oci_plans import oci_plan
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine


def _plan() -> OciPlan:
    """The stack of the tests of `up`."""
    stack = load_file(ONE_NODE / "Pulumi.local.yaml").stack
    assert stack is not None
    frameworks = gather_facts(stack, ONE_NODE).own_frameworks
    return oci_plan(stack, {key: own.columns for key, own in frameworks.items()})


GROUP = "deployers"
PLAN = _plan()
LINES = deployer_lines(PLAN, GROUP)
STATEMENTS = [line.text for line in LINES]
# Without those that only `trainyard drift` needs (tests/flows/drift/test_oci.py).
NEEDED = [index for index, line in enumerate(LINES) if line.why != (DRIFT,)]
SAMPLE = sorted(random.Random(FIRST).sample(NEEDED, min(wanted(2, len(NEEDED)), len(NEEDED))))
_REMEDY = re.compile(r"would grant it: ([^;\n]+)")
models = oci.identity.models


@dataclass(frozen=True)
class Deployer:
    """A user who is no administrator, with one policy. `admin`: the administrator who changes it."""

    team: Team
    admin: Clients
    policy: str
    env: Mapping[str, str]

    def grant(self, statements: Sequence[str]) -> None:
        self.admin.identity.update_policy(self.policy, models.UpdatePolicyDetails(statements=list(statements)))

    @property
    def refusals(self) -> str:
        log = (self.admin.cloud.home / "server.log").read_text()
        return "\n".join(line for line in log.splitlines() if " refused " in line)

    def command(self, command: str) -> list[str]:
        copy = self.team.home / "pulumi" / "stacks" / self.team.file.name
        return [
            "pulumi", command, "--stack", "local", "--config-file", str(copy), "--yes", "--skip-preview",
            "--non-interactive",
        ]  # fmt: skip

    def pulumi(self, command: str) -> str:
        done = subprocess.run(
            self.command(command), cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{self.refusals}"
        return done.stdout


def _key(admin: Clients, user: str) -> tuple[str, str]:
    """The private key of a new API key of a user, and its fingerprint."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    details = models.CreateApiKeyDetails(key=key.public_key().public_bytes(*form).decode())
    return private_pem(key).decode() + "OCI_API_KEY\n", admin.identity.upload_api_key(user, details).data.fingerprint


def _profile(admin: Clients, user: str, folder: Path) -> Path:
    """A credentials file with only this user."""
    private, fingerprint = _key(admin, user)
    key_file = folder / "key.pem"
    key_file.touch(mode=0o600)
    key_file.write_text(private)
    config = configparser.ConfigParser()
    config["DEFAULT"] = {
        "user": user, "fingerprint": fingerprint, "key_file": str(key_file), "tenancy": admin.cloud.tenancy,
        "region": admin.cloud.region,
    }  # fmt: skip
    with (folder / "config").open("w") as file:
        config.write(file)
    return folder / "config"


@pytest.fixture
def deployer(tmp_path: Path) -> Iterator[Deployer]:
    team = Team(tmp_path)
    try:
        team.trainyard("preview", "local")  # Makes the cloud and an empty stack.
        admin, identity = Clients(team.cloud), Clients(team.cloud).identity
        ready_images(team.cloud, PLAN)
        place: dict[str, Any] = {"compartment_id": team.cloud.tenancy, "name": GROUP, "description": "the deployers"}
        group = identity.create_group(models.CreateGroupDetails(**place)).data.id
        user = identity.create_user(models.CreateUserDetails(**place | {"name": "maria"})).data.id
        identity.add_user_to_group(models.AddUserToGroupDetails(user_id=user, group_id=group))
        policy = identity.create_policy(models.CreatePolicyDetails(**place, statements=STATEMENTS)).data.id
        profile = {"OCI_CONFIG_FILE": str(_profile(admin, user, tmp_path)), "OCI_CONFIG_PROFILE": "DEFAULT"}
        env = team.env({"TRAINYARD_STACKS": str(team.stacks), "GRPC_VERBOSITY": "NONE", **profile})
        yield Deployer(team, admin, policy, env)
    finally:
        team.end()


def test_the_statements_are_those_that_trainyard_access_prints() -> None:
    words = (sys.executable, "-m", "trainyard", "access", "local", "--stacks", str(ONE_NODE), "--deployers", GROUP)
    done = subprocess.run(
        [*words, "--format", "json"], cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert [right["statement"] for right in json.loads(done.stdout)["deployer"]["rights"]] == STATEMENTS


def test_a_deployer_with_the_least_policy_brings_a_stack_up_and_down(deployer: Deployer) -> None:
    made = summary(deployer.pulumi("up"))["created"]
    assert summary(deployer.pulumi("up")) == {"unchanged": made}
    assert deployer.refusals == ""
    storage, here = deployer.admin.storage, (deployer.admin.cloud.namespace, PLAN.bucket.name)
    for item in storage.list_object_versions(*here).data.items:
        storage.delete_object(*here, item.name, version_id=item.version_id)
    assert summary(deployer.pulumi("destroy")) == {"deleted": made}


def _names(refusals: str, statement: str) -> bool:
    """Whether the log proposes a statement for the same group that the removed statement includes."""
    missed = permissions_of_grant(parse_statement(statement).grant)
    return any(
        GROUP in proposal and missed & permissions_of_grant(parse_statement(proposal).grant)
        for proposal in _REMEDY.findall(refusals)
    )


@pytest.mark.parametrize("index", SAMPLE)
def test_without_one_statement_a_call_is_refused_and_the_log_names_it(deployer: Deployer, index: int) -> None:
    missing = STATEMENTS[index]
    if "log-content" in missing:  # The last lines of a run are read only if it failed.
        (deployer.team.stacks / "local" / "train.py").write_text("raise SystemExit(3)\n")
    deployer.grant([*STATEMENTS[:index], *STATEMENTS[index + 1 :]])
    told = deployer.team.home / "up.log"
    with told.open("w") as file:
        up = subprocess.Popen(deployer.command("up"), cwd=ROOT, env=deployer.env, stdout=file, stderr=file)
    try:
        eventually(lambda: up.poll() is not None or "trying again for up to" in told.read_text(), bool, LONGEST_SECONDS)
        assert _names(deployer.refusals, missing), deployer.refusals + told.read_text()
        if up.poll() is None:
            # A run waits until its access takes effect.
            deployer.grant(STATEMENTS)
            assert up.wait(LONGEST_SECONDS) == 0, told.read_text()
        else:
            assert up.returncode != 0
            assert re.search("NotAuthorizedOrNotFound|log could not be read", told.read_text()), told.read_text()
    finally:
        up.kill()
        up.wait()
