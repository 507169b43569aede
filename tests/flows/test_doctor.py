# SPDX-License-Identifier: Apache-2.0
"""`trainyard doctor` names the prerequisite that is broken and no other, and is silent where none is."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from components.openpai.client.storages import storages_folder
from localcloud.control import Cloud
from tests.support.local_team import ROOT, SHIPPED
from tests.support.prepared_account import BUCKET, REPOSITORY, ROLE, PreparedAccount
from tests.support.prepared_tenancy import Breakage, Prepared
from trainyard.cli.main import main

pytestmark = pytest.mark.engine

OTHER_TENANCY = "ocid1.tenancy.oc1..aaaaaaaaanothertenancy"
SECRET = "hunter2-is-a-secret"


def doctor(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["doctor", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert SECRET not in done.output
    # Whether this machine has a tool for images is no matter of a test.
    lines = [line for line in done.output.splitlines(True) if "no program here can build images" not in line]
    return done.exit_code, "".join(lines)


@pytest.fixture(scope="module")
def prepared(shared_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    home = tmp_path_factory.mktemp("home")
    made = Prepared(shared_cloud, home)
    made.write_stack()
    # As a real account: the variables of Oracle's clients, and no --local.
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    with patch.dict("os.environ", {**shared_cloud.env, "HOME": str(home), "XDG_CACHE_HOME": cache}):
        made.grant_printed_access()
        made.make_token()
        yield made


def breakages(prepared: Prepared) -> Sequence[Breakage]:
    cloud, one = prepared.cloud, prepared
    return (
        Breakage("no way in", partial(one.without_rules, True), ("network:", "ingress TCP", "from 10.0.0.0/24")),
        Breakage("no way to services", partial(one.without_rules, False), ("network:", "egress TCP", "443")),
        Breakage("no route", one.without_route, ("network:", "no way to the region's services", "service gateway")),
        Breakage("gateway", one.with_closed_gateway, ("network:", "blocks all", "--block-traffic false")),
        Breakage("bucket", one.without_bucket, ("bucket:", "risk-models", "oci os bucket create")),
        Breakage("statement", partial(one.without_statement, 0), (one.statements[0],)),
        Breakage("last statement", partial(one.without_statement, -1), (one.statements[-1],)),
        Breakage("matching rule", one.with_other_rule, ("runs:", "risk-job-runs", one.rule.split("'")[1])),
        Breakage("group", one.without_people, ("users:", "no group risk-people")),
        Breakage("image", one.without_image, ("registry:", one.image, "trainyard image push risk-prod")),
        Breakage("auth token", one.without_token, ("registry login:", "does not accept", "oci iam auth-token create")),
        Breakage("login", partial(one.with_login, "deployer"), ("registry login:", f"'{cloud.namespace}/<user>'")),
        Breakage("limit", one.with_limit, ("limit of VM.GPU.A10.1:", "needs 2 machines", "leaves 1")),
        Breakage(
            "project", partial(one.with_stack, project={"existing": "trainings"}),
            ("project:", "no project", "`trainings`"),
        ),
        Breakage(
            "tenancy", partial(one.with_stack, tenancy=OTHER_TENANCY), ("account:", OTHER_TENANCY, "--profile")
        ),
        Breakage(
            "key", partial(one.with_mode, cloud.home / "keys" / "deployer.pem", 0o644),
            ("credentials:", "mode 644", "chmod 600"),
        ),
        Breakage("config", partial(one.with_mode, cloud.config_file, 0o640), ("credentials:", "mode 640", "chmod 600")),
    )  # fmt: skip


def test_each_missing_prerequisite_is_named_and_no_other(prepared: Prepared) -> None:
    file = str(prepared.file)
    code, said = doctor(file)
    assert (code, said.count("\n")) == (0, 1), said
    assert_each_is_named(breakages(prepared), file)


def assert_each_is_named(broken_parts: Sequence[Breakage], *words: str) -> None:
    """That one and no other; and after the last one nothing is missing."""
    wrong = []
    for broken in broken_parts:
        undo = broken.make()
        try:
            code, said = doctor(*words)
        finally:
            undo()
        if code != 1 or "1 problem (" not in said or not all(word in said for word in broken.seen):
            wrong.append(f"{broken.title}, {broken.seen}: {code}\n{said}")
    code, said = doctor(*words)
    if (code, said.count("\n")) != (0, 1):
        wrong.append(said)
    assert not wrong, "\n".join(wrong)


def test_a_caller_without_rights_and_one_whom_nobody_knows(prepared: Prepared, tmp_path: Path) -> None:
    code, said = doctor(str(prepared.file), "--profile", "user")
    assert code == 1
    assert "the caller has none of the rights of a deployer" in said or "not asked" in said
    text = prepared.cloud.config_file.read_text().replace("ocid1.user.", "ocid1.user.oc1..nobody", 1)
    other = tmp_path / "config"
    other.write_text(text)
    other.chmod(0o600)
    with patch.dict("os.environ", {"OCI_CONFIG_FILE": str(other), "OCI_CONFIG_PROFILE": "DEFAULT"}):
        code, said = doctor(str(prepared.file))
    assert (code, "does not accept the key" in said, said.count("1 problem (")) == (1, True, 1), said


def test_the_printed_policy_of_a_deployer_is_enough_and_one_statement_less_is_not(prepared: Prepared) -> None:
    words = (str(prepared.file), "--profile", "user")
    statements = prepared.make_deployers("risk-deployers")
    code, said = doctor(*words)
    assert code in (0, 2), said
    assert "problem" not in said, "\n".join([said, *statements])
    chosen = next(text for text in statements if "data-science-jobs" in text)
    prepared.update_deployers([text for text in statements if text != chosen])
    code, said = doctor(*words)
    assert (code, "1 problem (" in said, chosen in said) == (1, True, True), said


def test_a_key_that_cannot_be_used_is_all_that_is_said(prepared: Prepared, tmp_path: Path) -> None:
    config, key = tmp_path / "config", tmp_path / "key.pem"
    os.mkfifo(key)
    text = prepared.cloud.config_file.read_text()
    config.write_text(re.sub(r"key_file = .*", f"key_file = {key}", text))
    config.chmod(0o600)
    with patch.dict("os.environ", {"OCI_CONFIG_FILE": str(config)}):
        code, said = doctor(str(prepared.file))
    assert (code, "the private key is not a file" in said, "1 problem (" in said) == (1, True, True), said


def test_without_network_it_says_so_and_ends_with_2(prepared: Prepared) -> None:
    overrides = {
        name: value.replace(prepared.cloud.endpoint, "http://127.0.0.1:9") for name, value in os.environ.items()
    }
    with patch.dict("os.environ", overrides):
        code, said = doctor(str(prepared.file))
    assert code == 2, said
    assert "not asked (account)" in said
    assert "Check the network" in said


def test_the_whole_command_is_silent_on_the_local_cloud(prepared: Prepared) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainyard", "doctor", str(prepared.file), "--home", str(prepared.cloud.home)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CLIENT_HOST_OVERRIDES": ""},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of a person without any setting, whose engine is where that of this account is."""
    for name in [name for name in os.environ if name.startswith(("OCI_", "TF_VAR_", "CLIENT_HOST"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".oci").mkdir()
    return tmp_path


def test_each_missing_prerequisite_on_aws_is_named_and_no_other(shared_cloud: Cloud, home: Path) -> None:
    account = PreparedAccount(shared_cloud, home)
    words = (str(account.file), "--home", str(shared_cloud.home))
    code, said = doctor(*words)
    assert (code, said.count("\n")) == (0, 1), said
    first_action = account.document["Statement"][0]["Action"][0]
    broken_parts = (
        Breakage("rule", account.without_rule, ("network:", "ingress TCP", account.group)),
        Breakage("bucket", account.without_bucket, ("bucket:", BUCKET)),
        Breakage("repository", account.without_repository, ("repository:", REPOSITORY)),
        Breakage("statement", account.without_statement, ("runs:", ROLE, first_action)),
        Breakage("role", account.without_role, ("runs:", "no instance profile", ROLE)),
        Breakage("quota", partial(account.with_quota, "L-1216C47A", 8), ("machines of ddp:", "16 vCPUs", "is 8")),
        Breakage("account", partial(account.with_stack, account="210987654321"), ("account:", "210987654321")),
    )
    assert_each_is_named(broken_parts, *words)
    code, said = doctor(*words, "--profile", "user")
    assert code in (1, 2), said
    assert "not asked" in said or "the caller, as deployer" in said, said
    nobody = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7NOBODY", "AWS_SECRET_ACCESS_KEY": SECRET}
    with patch.dict("os.environ", {**shared_cloud.env_for("deployer"), **nobody}):
        os.environ.pop("AWS_PROFILE")
        code, said = doctor(str(account.file))
    assert (code, "AWS does not accept the credentials" in said, "1 problem (" in said) == (1, True, True), said


def test_each_missing_prerequisite_on_openpai_is_named_and_no_other(shared_cloud: Cloud, home: Path) -> None:
    (home / "Pulumi.yaml").write_text("name: vision\nruntime: python\n")
    file, storage = home / "Pulumi.vision-pai.yaml", storages_folder(shared_cloud.home) / "vision-nfs"
    storage.mkdir(parents=True)

    def write(**changes: Any) -> Callable[[], object]:
        config = yaml.safe_load((SHIPPED / "Pulumi.openpai-ddp-gloo.yaml").read_text())["config"]
        config["trainyard:cluster"] = {"uri": shared_cloud.endpoint, "user": "user"}
        config["trainyard:jobs"]["cifar10"].pop("code")
        file.write_text(yaml.safe_dump({"config": config | {f"trainyard:{key}": of for key, of in changes.items()}}))
        return write

    def without_storage() -> Callable[[], object]:
        storage.rmdir()
        return storage.mkdir

    def with_token(token: str) -> Callable[[], object]:
        before = os.environ["OPENPAI_TOKEN"]
        os.environ["OPENPAI_TOKEN"] = token
        return lambda: os.environ.update(OPENPAI_TOKEN=before)

    write()
    at = {"uri": shared_cloud.endpoint, "user": "user"}
    large = {"gpu2": {"gpus": 4000, "cpus": 8, "memoryGb": 16}}
    broken_parts = (
        Breakage("storage", without_storage, ("storage:", "`vision-nfs`")),
        Breakage("cluster", partial(write, cluster={**at, "virtualCluster": "reserved"}), ("may not use", "`default`")),
        Breakage("size", partial(write, skus=large), ("size of cifar10:", "8000 of 4096 GPUs")),
        Breakage("user", partial(write, cluster={**at, "user": "deployer"}), ("account:", "of the user user")),
        Breakage("revoked", partial(with_token, SECRET), ("account:", "does not accept the token")),
        Breakage("no token", partial(with_token, ""), ("account:", "no token", "OPENPAI_TOKEN")),
    )
    with patch.dict("os.environ", shared_cloud.env_for("user")):
        assert_each_is_named(broken_parts, str(file))


PROFILE = "[DEFAULT]\nuser=ocid1.user.oc1..u\ntenancy=ocid1.tenancy.oc1..t\nfingerprint=aa:bb\nregion=us-ashburn-1\n"


@cache
def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def session_token(ends: float) -> str:
    return ".".join(
        base64.urlsafe_b64encode(part).decode() for part in (b"{}", json.dumps({"exp": ends}).encode(), b"")
    )


@pytest.mark.parametrize(
    ("text", "files", "words"),
    [
        ("", {}, "has no `tenancy`"),
        (f"[DEFAULT\n{SECRET}\n", {}, "config:1: this is not a configuration"),
        (f"{PROFILE}key_file=~/absent.pem\n", {}, "the private key is missing"),
        (f"{PROFILE}key_file=~/key.pem\n", {"key.pem": SECRET}, "is not a private key"),
        (f"{PROFILE}key_file=~/key.pem\n", {"key.pem": "KEY"}, "does not belong to the fingerprint"),
        (f"{PROFILE}key_file=~/key.pem\n", {"key.pem": "ENCRYPTED"}, "is encrypted"),
        (f"{PROFILE}key_file=~/key.pem\npass_phrase={SECRET}\n", {"key.pem": "ENCRYPTED"}, "can open"),
        (f"{PROFILE}security_token_file=~/token\nkey_file=~/key.pem\n", {"key.pem": "KEY", "token": session_token(1e9)},
         "expired"),
        (f"{PROFILE}security_token_file=~/token\nkey_file=~/key.pem\n", {"key.pem": "KEY", "token": SECRET},
         "is not a session token"),
    ],
    ids=["empty", "torn", "no key", "no pem", "other key", "encrypted", "wrong phrase", "expired", "no token"],
)  # fmt: skip
def test_files_of_credentials_are_judged_without_network(
    text: str, files: dict[str, str], words: str, home: Path
) -> None:
    forms = {"KEY": serialization.NoEncryption(), "ENCRYPTED": serialization.BestAvailableEncryption(b"phrase")}
    for name, content in files.items():
        if content in forms:
            pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            content = new_key().private_bytes(*pem, forms[content]).decode()
        (home / name).write_text(content)
        (home / name).chmod(0o600)
    (home / ".oci" / "config").write_text(text)
    (home / ".oci" / "config").chmod(0o600)
    code, said = doctor()
    assert (code, words in said, "1 problem (" in said) == (1, True, True), said


def test_a_machine_without_credentials_or_with_unreadable_ones(home: Path) -> None:
    assert doctor()[0] == 0
    config = home / ".oci" / "config"
    for make, remove in ((config.mkdir, config.rmdir), (partial(os.mkfifo, config), config.unlink)):
        make()
        code, said = doctor()
        assert (code, "is not a file" in said) == (1, True), said
        remove()
    config.write_text(f"{PROFILE}key_file=~/key.pem\n")
    config.chmod(0o600)
    os.mkfifo(home / "key.pem")
    code, said = doctor()
    assert (code, "the private key is not a file" in said) == (1, True), said


# What the guide of ADS calls problems, in words of our own beside the programs' words.
LOGS = {
    "horovod": (
        "UserWarning: resource_tracker: There appear to be 3 leaked semaphore objects to clean up at shutdown\n"
        "Exiting with exit code: 1", "between all nodes",
    ),
    "tensorboard": ("No dashboards are active for the current data set.", "first summaries"),
    "publish": ("denied: Anonymous users are only allowed read access on public repos", "registry"),
    "disk": ("ApplyLayer exit status 1 stdout:  stderr: write /opt/a.so: no space left on device", "space"),
    "key": ("PermissionError: [Errno 13] Permission denied: '/home/a/.oci/a.pem'", "key"),
    "tag": ('invalid argument "iad.ocir.io/n/dt:1.0:latest" for "-t, --tag" flag: invalid reference format', "name"),
    "login": ("failed to fetch anonymous token: unexpected status: 401 Unauthorized", "log in"),
}  # fmt: skip


@pytest.mark.parametrize("problem", LOGS)
def test_a_log_shows_a_problem_of_the_guide(problem: str, tmp_path: Path) -> None:
    line, word = LOGS[problem]
    log = tmp_path / "log.txt"
    log.write_text(f"begin\n{line}\nTraceback (most recent call last):\nRuntimeError: Docker build failed.\n")
    code, said = doctor("--log", str(log))
    assert code == 1, said
    assert word in said.lower(), said
    log.write_text("begin\n" + "epoch 1\n" * 20_000 + "done\n")
    assert doctor("--log", str(log)) == (0, f"{log}: no known problem\n")


def test_logs_that_are_none_end_the_command_with_a_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe", tmp_path / "absent"):
        code, said = doctor("--log", str(place))
        assert (code, "cannot be read" in said or "is not a file" in said) == (2, True), said
    (tmp_path / "binary").write_bytes(os.urandom(1 << 20))
    assert doctor("--log", str(tmp_path / "binary"))[0] == 0
