# SPDX-License-Identifier: Apache-2.0
"""`trainyard image` as a command, with a replacement for docker that records its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.examples import EXAMPLES, STACKS, plan, stack_file
from trainyard.cli.main import main

ADDRESS = "iad.ocir.io/acme/vision/ddp:1.4"
DIGEST = f"sha256:{'ab' * 32}"
# Records its arguments and the files of the build context, and prints the output of a push or an inspection.
DOCKER = f"""\
#!/bin/sh
echo "$*" >> "$0.log"
case "$1 $2" in
"version ") exit 0 ;;
"build "*)
    for context in "$@"; do :; done
    (cd "$context" && /usr/bin/find . -type f) > "$0.context"
    echo "step 1 of 1" ;;
"image inspect") echo '["iad.ocir.io/acme/vision/ddp@{DIGEST}"]' ;;
"push "*)
    [ -z "$DOCKER_SAYS" ] || {{ echo "$DOCKER_SAYS" >&2; exit 1; }} ;;
esac
"""


def _trainyard(*words: str, env: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, ["image", *words, "--stacks", str(STACKS)], env=env)


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The replacement is the only program on PATH, and there are no credentials."""
    file = tmp_path / "bin" / "docker"
    file.parent.mkdir()
    file.write_text(DOCKER)
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(file.parent))
    monkeypatch.setenv("OCI_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("CLIENT_HOST_OVERRIDES", "TRAINYARD_REGISTRY", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return file


def _told(docker: Path) -> list[list[str]]:
    return [line.split() for line in docker.with_name("docker.log").read_text().splitlines() if line != "version"]


def _context(docker: Path) -> set[str]:
    return {line.removeprefix("./") for line in docker.with_name("docker.context").read_text().splitlines()}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("command", ["build", "push"])
def test_a_dry_run_of_every_example_names_its_images(name: str, command: str) -> None:
    registry = ["--registry", "iad.ocir.io/acme/shared"] if "registry" in plan(name).taken else []
    told = _trainyard(command, name, "--dry-run", "--namespace", "acme", *registry)
    if not plan(name).jobs:
        assert (told.exit_code, "has no jobs" in told.output) == (1, True)
        return
    assert told.exit_code == 0, told.output
    for job in plan(name).jobs.values():
        assert f":{job.image.rpartition(':')[2]}" in told.output
    assert "${" not in told.output


def test_a_dry_run_makes_no_call() -> None:
    told = _trainyard("build", "oci-pytorch-ddp", "--dry-run", env={"OCI_CONFIG_FILE": "/nonexistent"})
    assert told.exit_code == 0
    assert "iad.ocir.io/<namespace>/vision/ddp:1.4" in told.stdout


ELSEWHERE = """\
config:
  trainyard:platform: openpai
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:cluster: {uri: "https://pai.example", user: anna}
  trainyard:skus: {gpu: {cpus: 1, memoryGb: 1, gpus: 1}}
  trainyard:storage: {name: results}
  trainyard:registry: {existing: registry.example/acme}
  trainyard:jobs:
    ddp:
      framework: pytorch
      image: "${registry}/ddp:1.4"
      shape: gpu
      maximumRuntimeMinutes: 60
      roles: {main: 1, worker: 3}
      command: train.py
      runs: {base: {}}
"""


@pytest.mark.parametrize(("command", "says"), [("build", "pytorch, gpu"), ("push", "login")])
def test_no_call_is_made_to_a_plain_registry(command: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.vision-dev.yaml"
    file.write_text(ELSEWHERE)
    shown = _trainyard(command, str(file), "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert "registry.example/acme/ddp:1.4" in shown.output
    assert says in shown.output


def test_a_build_passes_a_context_and_arguments_to_the_tool(docker: Path, tmp_path: Path) -> None:
    code, wishes = tmp_path / "code", tmp_path / "team.txt"
    code.mkdir()
    (code / "model.py").touch()
    wishes.write_text("einops\n")
    own = ["--code", str(code), "--requirements", str(wishes), "--base", "docker.io/library/python@sha256:0f"]
    built = _trainyard("build", "oci-pytorch-ddp", "--namespace", "acme", *own)
    assert built.exit_code == 0, built.output
    [words] = _told(docker)
    assert words[:4] == ["build", "--platform", "linux/amd64", "--file"]
    assert words[words.index("--tag") + 1] == ADDRESS
    assert "BASE=docker.io/library/python@sha256:0f" in words
    assert "TEAM=team" in words
    assert "VERSION=1.4" in words
    there = _context(docker)
    assert {"launcher/__main__.py", "launcher/images/base/Dockerfile", "team/code/model.py"} <= there
    assert not [name for name in there if name.endswith(".pyc") or not name.startswith(("launcher/", "team/"))]
    # The folder was for the build alone.
    assert not Path(words[-1]).exists()


@pytest.mark.parametrize(("options", "row"), [([], "gpu"), (["--gpu"], "gpu"), (["--no-gpu"], "cpu")])
def test_the_shape_decides_whether_there_is_a_gpu_unless_an_option_does(
    docker: Path, options: list[str], row: str
) -> None:
    built = _trainyard("build", "oci-tensorflow-multi-worker", "--namespace", "acme", *options)
    assert built.exit_code == 0, built.output
    [words] = _told(docker)
    assert ("REQUIREMENTS=launcher/images/tensorflow/gpu.txt" in words) == (row == "gpu")


def test_a_push_prints_the_digest(docker: Path) -> None:
    pushed = _trainyard("push", "oci-pytorch-ddp", "--namespace", "acme")
    assert pushed.exit_code == 0, pushed.output
    assert _told(docker)[0] == ["push", ADDRESS]
    assert pushed.stdout.splitlines()[-2:] == [f"Pushed {ADDRESS}", f"  {DIGEST}"]
    # Without credentials for OCI's API, the tool's own login is used. The output says both.
    assert "Could not check whether 1.4 exists already" in pushed.stderr
    assert "docker uses its own login" in pushed.stderr


def test_a_push_that_is_refused_says_how_to_log_in(docker: Path) -> None:
    pushed = _trainyard(
        "push", "oci-pytorch-ddp", "--namespace", "acme", env={"DOCKER_SAYS": "unauthorized: authentication required"}
    )
    assert pushed.exit_code == 1
    assert "docker login iad.ocir.io --username 'acme/<user>' --password-stdin" in pushed.stderr
    assert "Traceback" not in pushed.output


def test_an_image_for_gaudi_is_built_on_its_release_and_pushed_to_ecr(docker: Path) -> None:
    address = "123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/gaudi:1.15.1"
    built = _trainyard("build", "aws-dl1-resnet")
    assert built.exit_code == 0, built.output
    base = "vault.habana.ai/gaudi-docker/1.15.1/ubuntu22.04/habanalabs/pytorch-installer-2.2.0:latest"
    [words] = _told(docker)
    assert f"BASE={base}" in words
    assert words[words.index("--tag") + 1] == address
    assert words[words.index("--file") + 1].endswith("launcher/images/vendor/Dockerfile")
    pushed = _trainyard("push", "aws-dl1-resnet")
    assert pushed.exit_code == 0, pushed.output
    assert _told(docker)[1] == ["push", address]
    assert "docker uses its own login" in pushed.stderr
    dry = _trainyard("push", "aws-dl1-resnet", "--dry-run")
    assert "aws ecr get-login-password --region us-east-1 | docker login" in dry.stdout
    refused = _trainyard("push", "aws-dl1-resnet", env={"DOCKER_SAYS": "no basic auth credentials"})
    assert refused.exit_code == 1
    assert "aws ecr get-login-password" in refused.stderr


def test_without_credentials_the_namespace_is_a_required_option(docker: Path) -> None:
    for command in ("build", "push"):
        asked = _trainyard(command, "oci-pytorch-ddp")
        assert asked.exit_code == 1
        assert "No usable OCI credentials" in asked.stderr
        assert "--namespace" in asked.stderr
    assert not docker.with_name("docker.log").exists()


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"options": {"adsDriver": True}}, [], "built with ADS"),
        ({"image": f"${{registry}}@{DIGEST}"}, [], "named by its digest"),
        ({"shape": {"name": "VM.Standard.A1.Flex", "ocpus": 4, "memoryGb": 32}}, [], "is an Arm shape"),
        ({}, ["--job", "resnett"], "did you mean `resnet`"),
        ({}, ["--arg", "TOOLS"], "NAME=VALUE"),
        ({}, ["--arg", "TOOL=gcc"], "has no argument TOOL\ndid you mean `TOOLS`"),
        ({"code": None}, [], "--code FOLDER"),
    ],
)
def test_an_image_that_cannot_be_built_gives_the_reason(
    docker: Path, tmp_path: Path, change: dict[str, object], options: list[str], said: str
) -> None:
    told = _trainyard("build", str(_changed(tmp_path, change)), "--namespace", "acme", *options)
    assert said in told.output
    assert "Traceback" not in told.output


def test_two_frameworks_cannot_share_an_image(docker: Path, tmp_path: Path) -> None:
    file = _changed(tmp_path, {})
    data = yaml.safe_load(file.read_text())
    jobs = data["config"]["trainyard:jobs"]
    jobs["other"] = {**jobs["resnet"], "framework": "tensorflow", "options": {}, "ports": {}, "inputs": []}
    file.write_text(yaml.safe_dump(data))
    told = _trainyard("build", str(file), "--namespace", "acme")
    assert told.exit_code == 1
    assert "cannot serve both other (tensorflow, gpu) and resnet (pytorch, gpu)" in told.stderr
    assert "tags" in told.stderr


def test_jobs_that_share_an_image_agree_on_their_packages(docker: Path, tmp_path: Path) -> None:
    (tmp_path / "first.txt").write_text("einops\n")
    (tmp_path / "second.txt").write_text("tqdm\n")
    file = _changed(tmp_path, {"requirements": "./first.txt"})
    data = yaml.safe_load(file.read_text())
    jobs = data["config"]["trainyard:jobs"]
    jobs["other"] = {**jobs["resnet"], "requirements": "./second.txt"}
    file.write_text(yaml.safe_dump(data))
    told = _trainyard("build", str(file), "--namespace", "acme")
    assert told.exit_code == 1
    assert "cannot hold the packages of both" in told.stderr
    assert "other (./second.txt)" in told.stderr
    del jobs["other"]["requirements"]
    file.write_text(yaml.safe_dump(data))
    twice = _trainyard("build", str(file), "--namespace", "acme", "--requirements", str(tmp_path / "second.txt"))
    assert twice.exit_code == 1
    assert "Keep one of them" in twice.stderr
    built = _trainyard("build", str(file), "--namespace", "acme")
    assert built.exit_code == 0, built.output
    assert "team/requirements.txt" in _context(docker)


def _changed(folder: Path, change: dict[str, object]) -> Path:
    data = yaml.safe_load(stack_file("oci-pytorch-ddp").read_text())
    job = data["config"]["trainyard:jobs"]["resnet"]
    job.update(change)
    for name in [name for name, value in job.items() if value is None]:
        del job[name]
    if "code" in job:
        job["code"] = "./code"
        (folder / "code").mkdir(exist_ok=True)
        (folder / "code" / "train.py").touch()
    file = folder / "Pulumi.changed.yaml"
    file.write_text(yaml.safe_dump(data))
    return file


def test_the_help_of_image_lists_build_and_push() -> None:
    told = CliRunner().invoke(main, ["image", "--help"])
    assert told.exit_code == 0
    assert {"build", "push"} <= {line.split()[0] for line in told.stdout.splitlines() if line.startswith("  ")}
