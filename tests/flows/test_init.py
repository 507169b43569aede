# SPDX-License-Identifier: Apache-2.0
"""`trainyard init`: a stack file from scripts in the style of tutorials, and from resources that exist."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from catalog.machines import machine_types_of
from localcloud.control import Cloud
from schemas.judge import judge_file
from tests.support.pages import a_desk, run_typed
from trainyard.cli.main import main

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "init"
TUTORIALS = [*(ROOT / "tests" / "tutorials").glob("*/"), *(ROOT / "docs" / "first-hour").glob("*/")]
PLATFORMS = ("oci", "aws", "openpai")
# A script that gets its data from the internet, and one that stores on each node: `check` says so to everybody.
_OF_THE_SCRIPT = {"TY8001", "TY8002", "TY4001", "TY8200"}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of a user without any account."""
    for name in [name for name in os.environ if name.startswith(("OCI_", "AWS_", "OPENPAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "vision"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def init(*arguments: str | Path, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, ["init", *map(str, arguments)], input=typed, catch_exceptions=False)


def config_of(file: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(file.read_text())["config"]
    return config


@pytest.mark.parametrize("name", sorted(path.name for path in SCRIPTS.iterdir() if path.is_dir()))
def test_a_script_becomes_a_stack_that_passes_check_on_every_platform(name: str, work: Path) -> None:
    expect = tomllib.loads((SCRIPTS / name / "expect.toml").read_text())
    gpus, said, written = expect.pop("gpus"), expect.pop("said", ""), expect.pop("written", None)
    for platform in PLATFORMS:
        shutil.copytree(SCRIPTS / name, work / platform, ignore=shutil.ignore_patterns("expect.toml"))
        script = next(path for path in (work / platform).glob("*.py"))
        told = init(script, "--platform", platform, "--stack", platform, "--yes")
        file = work / f"Pulumi.{platform}.yaml"
        judged = judge_file(file)
        assert told.exit_code == 0, told.output
        # No machine of AWS has just two accelerators.
        assert {finding.code for finding in judged.findings} <= {"TY868"}, told.output
        (job,) = config_of(file)["trainyard:jobs"].values()
        assert said in told.output
        if "requirements" in expect:
            assert job["requirements"] == f"./{platform}/{expect['requirements']}"
        assert written is None or (work / platform / "requirements.txt").read_text() == written
        assert {key: job.get(key) for key in expect if key != "requirements"} == {
            key: value for key, value in expect.items() if key != "requirements"
        }
        assert has_gpus(platform, job, config_of(file)) is gpus


def has_gpus(platform: str, job: dict[str, Any], config: dict[str, Any]) -> bool:
    shape = job["shape"] if isinstance(job["shape"], str) else job["shape"]["name"]
    rows = config.get("trainyard:skus") or machine_types_of("aws-dl1" if platform == "aws" else platform)
    row = rows[shape]
    accelerators: int = row.get("gpus", row.get("accelerators", 0))
    processes = job.get("options", {}).get("processes", 1)
    assert accelerators == 0 or processes <= accelerators
    return accelerators > 0


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_tutorials_of_this_repository_become_stacks(tutorial: Path, work: Path) -> None:
    """The oracle is the framework that their own stack files name."""
    shutil.copytree(tutorial, work / tutorial.name, ignore=shutil.ignore_patterns("Pulumi.*"))
    told = init(tutorial.name, "--yes")
    (file,) = work.glob("Pulumi.*.yaml")
    assert told.exit_code == 0, told.output
    assert {finding.code for finding in judge_file(file).findings} <= _OF_THE_SCRIPT, told.output
    (job,) = config_of(file)["trainyard:jobs"].values()
    expected = {"ddp": "pytorch", "keras": "tensorflow"}.get(tutorial.name, tutorial.name)
    assert job["framework"] == expected


def test_six_scripts_of_other_frameworks_share_one_network(work: Path) -> None:
    shutil.copytree(ROOT / "docs" / "first-hour", work, dirs_exist_ok=True)
    told = init(*sorted(path.name for path in work.iterdir()), "--yes", "--local")
    assert told.exit_code == 0, told.output
    assert judge_file(work / "Pulumi.vision-dev.yaml").findings == ()
    assert "trainyard up vision-dev --local" in told.output


def test_the_account_comes_from_oracles_configuration_and_no_key_is_shown(work: Path, tmp_path: Path) -> None:
    copy_script(work)
    folder = tmp_path / "home" / ".oci"
    folder.mkdir(parents=True)
    tenancy = "ocid1.tenancy.oc1..aaaaaaaacompany"
    settings = f"user=ocid1.user.oc1..aaaaaaaame\nfingerprint=00:11\ntenancy={tenancy}\nregion=eu-frankfurt-1\n"
    (folder / "config").write_text(f"[DEFAULT]\n{settings}pass_phrase=hush-hush\nkey_file=~/.oci/key.pem\n")
    told = init("train.py", "--yes", "--set", "group=vision-people", "--nodes", "4")
    config = config_of(work / "Pulumi.vision-dev.yaml")
    assert told.exit_code == 0, told.output
    assert (config["trainyard:tenancy"], config["oci:region"]) == (tenancy, "eu-frankfurt-1")
    assert config["trainyard:access"] == {"users": {"group": "vision-people"}}
    assert sum(config["trainyard:jobs"]["vision"]["roles"].values()) == 4
    text = (work / "Pulumi.vision-dev.yaml").read_text() + told.output
    assert "hush-hush" not in text
    assert "aaaaaaaame" not in text
    assert "pulumi up -s vision-dev" in told.output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[DEFAULT\nhush", "config:1: this is not a configuration file"),
        ("[DEFAULT]\nregion=eu-frankfurt-1\n", "the profile DEFAULT has no `tenancy`"),
        (None, "cannot be read: Is a directory"),
        ("[DEFAULT]\nuser=\xff\n", "is not a configuration file"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(
    content: str | None, words: str, work: Path, tmp_path: Path
) -> None:
    copy_script(work)
    file = tmp_path / "home" / ".oci" / "config"
    if content is None:
        file.mkdir(parents=True)
    else:
        file.parent.mkdir(parents=True)
        file.write_bytes(content.encode("latin-1"))
    told = init("train.py", "--yes")
    assert told.exit_code == 0
    assert words in told.output
    assert "hush" not in told.output
    assert "ocid1.tenancy.oc1..aaaaaaaa5ht5" in (work / "Pulumi.vision-dev.yaml").read_text()


def test_nothing_is_overwritten(work: Path) -> None:
    copy_script(work)
    (work / "Pulumi.vision-dev.yaml").write_text("mine")
    again = init("train.py", "--yes")
    assert (again.exit_code, "never overwritten" in again.output) == (2, True)
    assert (work / "Pulumi.vision-dev.yaml").read_text() == "mine"
    (work / "Pulumi.linked.yaml").symlink_to(work / "elsewhere")
    assert init("train.py", "--yes", "--stack", "linked").exit_code == 2
    assert not (work / "elsewhere").exists()


def test_a_file_that_is_no_script_is_refused_with_a_reason(work: Path) -> None:
    (work / "model.py").write_bytes(b"\x7fELF\0\0\0")
    (work / "broken.py").write_text("import torch\ndef (:\n")
    (work / "notes.txt").write_text("torchrun train.py")
    with (work / "huge.py").open("wb") as huge:
        huge.truncate(1 << 30)
    (work / "several").mkdir()
    for name in ("a.py", "b.py"):
        (work / "several" / name).write_text("import torch\n")
    cases = {
        "model.py": "is a binary file", "broken.py": "broken.py:2: Python cannot read it", "missing.py": "not exist",
        "notes.txt": "is not a Python script", "huge.py": "binary", "several": "There are `a.py`, `b.py`",
    }  # fmt: skip
    for script, words in cases.items():
        told = init(script, "--yes")
        assert (told.exit_code, words in told.output) == (2, True), told.output
    assert not list(work.glob("Pulumi.*"))


def test_shell_scripts_of_every_kind_are_read(work: Path) -> None:
    """Windows' line ends, a byte order mark, tabs, a heredoc, and options that only Slurm knows."""
    copy_script(work)
    (work / "run.sh").write_bytes(
        b"\xef\xbb\xbf#!/bin/bash\r\n\tcat <<END >notes\r\n it's open\r\nEND\r\n"
        b"\ttorchrun --nnodes 3 \\\r\n\t  --nproc_per_node=2 train.py --lr 0.1; echo done\r\n"
    )
    assert init("run.sh", "--yes").exit_code == 0
    job = config_of(work / "Pulumi.vision-dev.yaml")["trainyard:jobs"]["vision"]
    assert (job["roles"], job["command"]) == ({"main": 1, "worker": 2}, "train.py --lr 0.1")
    told = init("train.py", "--yes", "--stack", "typed", "--line", "srun -N4 --ntasks-per-node=1 python train.py")
    assert told.exit_code == 0, told.output
    assert sum(config_of(work / "Pulumi.typed.yaml")["trainyard:jobs"]["vision"]["roles"].values()) == 4


def test_what_a_script_says_stays_in_comments_and_no_secret_gets_into_the_file(work: Path) -> None:
    hostile = "a\\n  trainyard:team: theirs\\u2028#\\x1b[2J"
    (work / "train.py").write_text(f"import argparse, torch\n\nargparse.ArgumentParser().add_argument('{hostile}')\n")
    told = init("train.py", "--yes")
    assert config_of(work / "Pulumi.vision-dev.yaml")["trainyard:team"] == "vision"
    assert "\x1b" not in (work / "Pulumi.vision-dev.yaml").read_text() + told.output
    token = "hf_" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7"
    (work / "run.sh").write_text(f"export HF_TOKEN={token}\ntorchrun train.py --token {token} --lr 1 --key=$HF_TOKEN\n")
    told = init("train.py", "--yes", "--stack", "second")
    text = (work / "Pulumi.second.yaml").read_text()
    assert token not in text + told.output
    assert "command: train.py --lr 1\n" in text
    assert "looks like a secret" in told.output


def test_people_are_asked_at_a_terminal_only(work: Path) -> None:
    shutil.copy(SCRIPTS / "torchrun-readme" / "multi_node.py", work)
    told = subprocess.run(
        ["script", "-qec", f"{sys.executable} -m trainyard init multi_node.py --local", "/dev/null"],
        input="speech\n\n7 2\n", env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=work, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout
    job = config_of(work / "Pulumi.speech-dev.yaml")["trainyard:jobs"]["multi-node"]
    assert job["command"] == "multi_node.py 7 2"


def copy_script(work: Path) -> None:
    (work / "train.py").write_text("import torch.distributed\n\ntorch.distributed.init_process_group('gloo')\n")


def test_an_id_that_is_of_no_use_is_refused(cloud: Cloud, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_HOME", str(cloud.home.parent))
    elsewhere = "ocid1.vcn.oc1.iad.aaaaaaaaofsomebodyelse"
    cases = {
        ("oci", elsewhere): f"{elsewhere} is not in the tenancy",
        ("oci", "ocid1.instance.oc1.iad.aaaaaaaaone"): "is of the kind instance",
        ("oci", "subnet-0123"): "is not an OCID",
        ("aws", "arn:aws:iam::999988887777:role/theirs"): "is of the account 999988887777",
        ("aws", "subnet-0123456789abcdef0"): "There is no subnet subnet-0123456789abcdef0",
        ("aws", "i-0123456789abcdef0"): "cannot be used",
        ("openpai", "anything"): "cannot be read by their ids",
    }
    for (platform, named), words in cases.items():
        told = init("--existing", named, "--platform", platform, "--local")
        assert (told.exit_code > 0, words in " ".join(told.output.split())) == (True, True), told.output
    assert not list(work.glob("Pulumi.*"))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    with a_desk(tmp_path) as variables:
        cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        yield {**variables, "XDG_CACHE_HOME": cache}


_STACKS = {
    "oci": "  oci:region: us-ashburn-1\n  trainyard:network: { cidr: 10.42.0.0/16, nat: true, frameworks: [dask] }\n"
    "  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaa5ht5rzh6lhj3ybgbqwbxgmdkob7kyfkwpemy6rgxtk3wvnslxbux\n"
    "  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaaqa3fdyvnsps4m4cxbrubespqea6ex72r5ddlzdt7f3dgpjyxynbn\n"
    "  trainyard:bucket: { name: of-plan, versioning: false }\n  trainyard:logs: { retentionDays: 90 }\n",
    "aws": "  aws:region: us-west-2\n  trainyard:platform: aws\n  trainyard:account: '123456789012'\n"
    "  trainyard:network: { cidr: 10.43.0.0/16, nat: true }"
    "\n  trainyard:registry: { repository: plan/images, immutable: true }\n",
}
_IDS = {
    "oci": {
        "Vcn": "{}", "Subnet": "{}", "Bucket": "{}", "ContainerRepository": "{}", "LogGroup": "{}",
        "DynamicGroup": "{}", "Project": "{}",
    },
    "aws": {
        "Subnet": "{}", "Bucket": "arn:aws:s3:::{}", "Repository": "arn:aws:ecr:us-west-2:123456789012:repository/{}",
        "LogGroup": "arn:aws:logs:us-west-2:123456789012:log-group:{}", "Role": "arn:aws:iam::123456789012:role/{}",
    },
}  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("platform", ["oci", pytest.param("aws", marks=pytest.mark.torture)])
def test_what_up_made_is_imported_and_the_first_preview_is_empty(
    platform: str, desk: dict[str, str], tmp_path: Path
) -> None:
    """The state of a stack is lost. `init` finds again what it made, by some of its ids.

    On AWS one setting is left, which only Pulumi's provider has: no call reads it, and none will change it."""
    work, name = tmp_path / "work", f"plan-{platform}"
    file = work / f"Pulumi.{name}.yaml"
    own = f"  trainyard:team: plan\n  trainyard:environment: {platform}\n"
    file.write_text(f"config:\n{_STACKS[platform]}{own}  trainyard:access: {{ users: {{ group: scientists }} }}\n")
    run_typed(f"trainyard up {name} --local", desk, work)
    state = next((Path(desk["TRAINYARD_HOME"]) / "pulumi").glob(f"state/.pulumi/stacks/trainyard/{name}.json"))
    rows = json.loads(state.read_text())["checkpoint"]["latest"]["resources"]
    forms = _IDS[platform]
    ids = " ".join(
        f"--existing {forms[kind].format(row['id'])}"
        for row in rows
        if (kind := row["type"].rpartition(":")[2]) in forms
        and row.get("id")
        # Of two subnets, that of the nodes.
        and (kind != "Subnet" or row["urn"].endswith("::subnet"))
    )
    state.unlink()
    file.rename(tmp_path / "kept.yaml")
    region = "--set region=us-west-2" if platform == "aws" else ""
    told = run_typed(f"trainyard init {ids} --import --local --platform {platform} {region}", desk, work)
    assert f"{name}.import.json is written" in told
    assert "not found" not in told
    command = re.search(r"^Next: (.+)$", told, re.MULTILINE)
    assert command is not None
    run_typed(f"{command[1]}", desk, work)
    made = json.loads(run_typed(f"trainyard preview {name} --local --json", desk, work))
    changed = {
        (step["newState"]["type"], *step.get("diffReasons", ())) for step in made["steps"] if step["op"] != "same"
    }
    left = {("aws:ec2/securityGroup:SecurityGroup", "revokeRulesOnDelete")} if platform == "aws" else set()
    assert changed == left
    # Used instead of managed: the file names the same resources. On AWS every stack has a log group of its own.
    ids = re.sub(r"--existing arn:aws:logs:\S+", "", ids)
    told = run_typed(f"trainyard init {ids} --local --platform {platform} {region} --stack using", desk, work)
    config = config_of(work / "Pulumi.using.yaml")
    assert config["trainyard:access"]["existing"] is True
    assert "subnet" in config["trainyard:network"]
    assert "existing" in config["trainyard:bucket"]
