# SPDX-License-Identifier: Apache-2.0
"""Scripts and jobs of other systems become stacks, and run as they did there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from catalog.platforms import platform_spellings
from components.openpai.job import protocol_of
from components.openpai.plan import openpai_plan
from components.openpai.protocol import parse_job_text, task_command
from components.plan.build import plan_file
from launcher.document import read_launch
from launcher.placeholders import Place
from launcher.speaks import spoken_variables
from schemas.judge import judge_file
from tests.support.ads_answers import JOBS
from tests.support.ads_answers import recorded_answers as answers_of_ads
from tests.support.bringing import BRING, STACK, convert, converted_nodes, planned_nodes
from tests.support.openpai_source import ENVIRONMENTS
from tests.support.openpai_source import recorded as openpai_answers
from tests.support.rehearsing import Rehearsals
from tests.support.slurm_answers import SCRIPTS, comparable_lines, live_answers, recorded_answers
from tests.support.slurm_cluster import fetched_slurm, slurm_cluster
from trainyard.cli.main import main

_RUNS = {"array": "array-task-3"}
# Of the files, in plain text.
_SECRETS = ("hf_AbCdEf", "abcdef123456", "correct-horse")
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((BRING / "expected.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_becomes_a_stack_that_passes_check(name: str, tmp_path: Path) -> None:
    """Or is refused with the line. The notes on standard error are those in the head of the stack."""
    expected, source = EXPECTED[name], BRING / name
    shutil.copytree(source if source.is_dir() else source.parent, tmp_path, dirs_exist_ok=True)
    files = sorted(file.name for file in source.iterdir()) if source.is_dir() else [source.name]
    made = convert(tmp_path, *files, *expected.get("options", ()))
    assert made.code == expected["exit"], made.notes
    assert [part for part in expected["says"] if part not in made.notes] == [], made.notes
    assert not [secret for secret in _SECRETS if secret in made.notes + made.stack]
    if made.code == 2:
        assert not made.stack
        return
    assert [line for line in made.notes.splitlines() if f"# {line}" not in made.stack] == []
    (config,) = yaml.safe_load(made.stack).values()
    (job,) = config["trainyard:jobs"].values()
    assert {key: job.get(key) for key in expected.get("job", ())} == expected.get("job", {})
    file = tmp_path / f"Pulumi.{STACK}.yaml"
    file.write_text(made.stack)
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    found = judge_file(file, str(file)).findings
    assert not [finding for finding in found if finding.severity == "error"]
    # What nobody could know is found by `check`, too.
    unfilled = [finding for finding in found if finding.code == "TY6000"]
    assert len(unfilled) == made.codes().count("TB203")


OPENPAI = sorted(file for file in (BRING / "openpai").glob("*.yaml") if EXPECTED[f"openpai/{file.name}"]["exit"] < 2)


@pytest.mark.parametrize("file", OPENPAI, ids=lambda file: file.stem)
def test_a_job_of_openpai_stays_what_it_is(file: Path, tmp_path: Path) -> None:
    """Each task runs the text that the cluster made of the job before, and asks for the same."""
    shutil.copy(file, tmp_path)
    made = convert(tmp_path, file.name)
    stack = tmp_path / f"Pulumi.{STACK}.yaml"
    stack.write_text(made.stack)
    plan = openpai_plan(plan_file(stack, lambda text: None))
    (job,) = plan.jobs.values()
    before, after = parse_job_text(file.read_text()), protocol_of(plan, job, job.runs["base"], None)
    assert list(after["taskRoles"]) == list(before["taskRoles"])
    for name, role in before["taskRoles"].items():
        assert after["taskRoles"][name]["resourcePerInstance"] == role["resourcePerInstance"]
        assert after["taskRoles"][name]["instances"] == role["instances"]
        assert after["taskRoles"][name].get("extraContainerOptions") == role.get("extraContainerOptions")
        # A secret is a variable, and a parameter without a value stays.
        text = task_command(before, name)
        if "secrets" not in before:
            assert text in task_command(after, name)
    assert after["extras"].get("hivedScheduler", {}).get("jobPriorityClass") == before.get("extras", {}).get(
        "hivedScheduler", {}
    ).get("jobPriorityClass")


@pytest.mark.parametrize("file", OPENPAI, ids=lambda file: file.stem)
def test_a_job_of_openpai_has_a_stack_elsewhere(file: Path, tmp_path: Path) -> None:
    shutil.copy(file, tmp_path)
    made = convert(tmp_path, file.name, "--platform", "oci")
    assert made.code in (0, 1), made.notes
    assert "<%" not in made.stack or "parameters.nothing" in made.stack
    assert not [secret for secret in _SECRETS if secret in made.notes + made.stack]
    stack = tmp_path / f"Pulumi.{STACK}.yaml"
    stack.write_text(made.stack)
    found = judge_file(stack, str(stack)).findings
    assert not [finding for finding in found if finding.severity == "error"], found


def test_tasks_of_openpai_meet_on_nodes_of_a_stack(tmp_path: Path) -> None:
    """The commands run in bash on every node, with the address and the port of the first task."""
    for name in ("ddp.yaml", "train.py"):
        shutil.copy(BRING / "openpai" / name, tmp_path)
    with converted_nodes(tmp_path, ["ddp.yaml", "--platform", "oci"], "letters-ddp-gloo") as run:
        assert run.start().codes() == [0, 0], run.shown()
        assert "rank 1 of 2: all are here" in run.launchers[1].text


def test_pods_of_a_pytorchjob_meet_on_nodes_of_a_stack(tmp_path: Path) -> None:
    """Each node has the rank, and all have the address and the port, that the operator gives Pods."""
    for name in ("pytorch_ddp.yaml", "train.py"):
        shutil.copy(BRING / "kubernetes" / name, tmp_path)
    with converted_nodes(tmp_path, ["pytorch_ddp.yaml"], "letters-ddp") as run:
        assert run.start().codes() == [0, 0], run.shown()
        assert "rank 1 of 2: all are here" in run.launchers[1].text


@pytest.mark.parametrize("platform", ["openpai", "aws"])
@pytest.mark.parametrize(
    "name", ["pytorch_ddp.yaml", "mpi.yaml", "tensorflow_servers.yaml", "shell.yaml", "torchrun.yaml"]
)
def test_a_job_of_kubernetes_has_a_stack_everywhere(name: str, platform: str, tmp_path: Path) -> None:
    shutil.copy(BRING / "kubernetes" / name, tmp_path)
    made = convert(tmp_path, name, "--platform", platform)
    assert made.code in (0, 1), made.notes
    stack = tmp_path / f"Pulumi.{STACK}.yaml"
    stack.write_text(made.stack)
    found = judge_file(stack, str(stack)).findings
    assert not [finding for finding in found if finding.severity == "error"], found


# Files of a cluster that are no job -> part of the only note.
_NO_JOBS = {
    "quoted": (
        'apiVersion: v1\nkind: PyTorchJob\nspec: "{{ .Values.x }}"\n',
        ":3: error TB001: it is a template of Helm",
    ),
    "jinja": ("apiVersion: v1\nkind: PyTorchJob\nspec: {{ x }}\n", ":3: error TB001: it is not YAML"),
    "other": ("apiVersion: v1\nkind: Pod\n", ":2: error TB003: it has no job that trains (Pod)"),
    "runtime": (
        "apiVersion: v1\nkind: TrainingRuntime\nmetadata: {name: x}\n",
        "error TB004: it is the runtime of TrainJobs, and none of them is there",
    ),
    "empty": ("apiVersion: v1\nkind: MPIJob\n", ":1: error TB003: it has no replicas"),
    "many": (
        "apiVersion: v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Worker: {replicas: 9999999999}\n",
        ":5: error TB003: `spec.pytorchReplicaSpecs.Worker.replicas` is not a whole number",
    ),
    "number": (
        "apiVersion: v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Worker: {replicas: $N}\n",
        ":5: error TB003: `spec.pytorchReplicaSpecs.Worker.replicas` is not a whole number",
    ),
    "tasks": ("protocolVersion: 2\ntaskRoles: {}\n", ":2: error TB003: it has no task role"),
    "ports": (
        "protocolVersion: 2\ntaskRoles:\n  a: {resourcePerInstance: {ports: {x: 999999999}}}\n",
        ":3: error TB003: `taskRoles.a.resourcePerInstance.ports.x` is not a whole number",
    ),
}


@pytest.mark.parametrize("name", _NO_JOBS)
def test_what_is_no_job_of_a_cluster_is_refused_with_the_line(name: str, tmp_path: Path) -> None:
    text, why = _NO_JOBS[name]
    (tmp_path / "job.yaml").write_text(text)
    made = convert(tmp_path, "job.yaml")
    assert (made.code, made.stack, len(made.notes.splitlines())) == (2, "", 1), made.notes
    assert why in made.notes


def test_a_train_job_alone_names_its_runtime(tmp_path: Path) -> None:
    folder = BRING / "kubernetes" / "trainjob"
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    made = convert(tmp_path, "trainjob.yaml")
    assert made.code == 2
    assert "TB004: it has no command: that is in the ClusterTrainingRuntime `torch-two-nodes`" in made.notes


@pytest.mark.parametrize("platform", sorted(platform_spellings()))
@pytest.mark.parametrize("script", ["ddp", "task_per_gpu"])
def test_every_platform_has_a_stack_for_it(platform: str, script: str, tmp_path: Path) -> None:
    shutil.copy(BRING / "slurm" / f"{script}.sbatch", tmp_path)
    (tmp_path / "train.py").touch()
    made = convert(tmp_path, f"{script}.sbatch", "--platform", platform)
    assert made.code in (0, 1), made.notes
    file = tmp_path / f"Pulumi.{STACK}.yaml"
    file.write_text(made.stack)
    found = judge_file(file, str(file)).findings
    assert not [finding for finding in found if finding.severity == "error"], found
    assert [finding.code for finding in found].count("TY6000") == made.codes().count("TB203")


# Options of a script, and platform -> parts of the notes on its machine, and its shape.
_MACHINES = {
    "2 CPUs": ("--cpus-per-task=2", "oci", "", "VM.Standard.E4.Flex"),
    "some GPU": ("--gpus=2", "oci", "nothing says which GPU it needs: VM.GPU.A10.2 has A10 24GB", "VM.GPU.A10.2"),
    "some GPU of AWS": ("--gpus=1 --cpus-per-task=8", "aws", ": g6.2xlarge has L4", "g6.2xlarge"),
    "B200": ("--gpus=4 --constraint=b200", "oci", "", "BM.GPU.B200.8"),
    "unknown GPU": ("--gres=gpu:gtx:1", "oci", "no machine has 1 GPU (gtx) and 1 CPU: VM.GPU.A10.1", "VM.GPU.A10.1"),
    "too many": ("--gpus=16", "aws", "no machine has 16 GPUs and 1 CPU: g6.48xlarge comes nearest", "g6.48xlarge"),
    "too large": ("--mem=9000G", "oci", "VM.Standard.E4.Flex has 64 OCPUs and 1024 GB at most", "VM.Standard.E4.Flex"),
    "GPU that nobody asks for": ("--constraint=a100", "aws", "", "c7i.xlarge"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, of a user without any account."""
    for name in [name for name in os.environ if name.startswith(("OCI_", "AWS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", _MACHINES)
def test_the_machine_has_what_the_script_asks_for_or_a_note_says_what_not(case: str, folder: Path) -> None:
    options, platform, says, shape = _MACHINES[case]
    (folder / "job").write_text(f"#!/bin/bash\n#SBATCH {options}\nsrun ./train\n")
    told = CliRunner().invoke(main, ["convert", "job", "--platform", platform], catch_exceptions=False)
    (job,) = yaml.safe_load(told.stdout)["config"]["trainyard:jobs"].values()
    assert (job["shape"] if isinstance(job["shape"], str) else job["shape"]["name"]) == shape
    assert says in told.stderr
    assert bool(says) is ("TB202: no" in told.stderr or "GB at most" in told.stderr), told.stderr


def test_an_account_that_cannot_be_read_is_named_and_stays_open(folder: Path) -> None:
    (folder / "job").write_text("#!/bin/bash\nsrun ./train\n")
    (folder / ".oci").mkdir()
    (folder / ".oci" / "config").write_text("[DEFAULT\npass_phrase=hush\n")
    told = CliRunner().invoke(main, ["convert", "job"], catch_exceptions=False)
    assert ".oci/config:1: this is not a configuration file" in told.stderr
    assert "hush" not in told.output
    config = yaml.safe_load(told.stdout)["config"]
    assert config["trainyard:tenancy"] == "ocid1.tenancy.oc1..replace-me"


# Who wrote a file, and why it is no batch script -> part of the only note.
_BROKEN = {
    "dos": (b"#!/bin/bash\r\n#SBATCH -N 2\r\n", "its lines end as on DOS"),
    "none": (b"#SBATCH -N 2\nsrun x\n", "does not begin with `#!`"),
    "binary": (b"#!/bin/bash\n\0\0", "it is a binary file"),
    "large": (b"#!/bin/bash\n" + b"#" * 3_000_000, "it has more than 2 MB"),
    "other": (b"hello\n", "it is not"),
    "nodes": (b"#!/bin/bash\n#SBATCH --nodes={{ nodes }}\n", ":2: error TB003: `--nodes={{` is not a whole number"),
    "array": (b"#!/bin/bash\n#SBATCH --array=0-9999\n", ":2: error TB002: `--array=0-9999` makes more than 64 runs"),
    "time": (b"#!/bin/bash\n#SBATCH --time=soon\n", ":2: error TB003: `--time=soon` is not a time"),
    "quote": (b"#!/bin/bash\n#SBATCH --job-name='x\n", "cannot be split"),
}


@pytest.mark.parametrize("name", _BROKEN)
def test_what_is_no_batch_script_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    content, why = _BROKEN[name]
    (tmp_path / "job").write_bytes(content)
    made = convert(tmp_path, "job")
    assert (made.code, made.stack, len(made.notes.splitlines())) == (2, "", 1)
    assert why in made.notes


@pytest.mark.parametrize(
    "script",
    [pytest.param(one, id=one.stem, marks=() if one.stem == "gang" else pytest.mark.torture) for one in SCRIPTS],
)
def test_a_batch_script_sees_what_it_saw_under_slurm(script: Path, tmp_path: Path) -> None:
    """Every variable of the batch part and of every task, the layout of many steps, and the codes of a failing one."""
    shutil.copy(script, tmp_path)
    name = {"plain": "plain-one", "gang": "gang"}.get(script.stem, script.stem + "-sbatch")
    with converted_nodes(tmp_path, [script.name], name, _RUNS.get(script.stem, "base")) as run:
        assert run.start().codes() == [0] * len(run.documents), run.shown()
        everyone = [run.address(rank) for rank in range(len(run.documents))]
        printed = {rank: run.launchers[rank].text.splitlines() for rank in run.launchers}
    plain = {rank: [line.partition("] ")[2] for line in lines] for rank, lines in printed.items()}
    expected = recorded_answers()[script.name]
    whole = comparable_lines((line for lines in plain.values() for line in lines), everyone)
    # Each node has the code of its own tasks.
    assert [line for line in whole if not line.startswith("code")] == [
        line for line in expected if not line.startswith("code")
    ]
    assert [line for line in expected if line.startswith("code")] == max(
        ([line for line in whole if line.startswith("code")][-1:], [])
    )
    for lines in plain.values():
        of_node = [line for line in comparable_lines(lines, everyone) if line.startswith(("batch", "host"))]
        assert of_node == [line for line in expected if line.startswith(("batch", "host"))]


# What a node's image of ADS reads, and a stack says in another way: its own folder of the bucket, Dask's start options.
_OTHERWISE = ("OCI__WORK_DIR", "OCI__EPHEMERAL", "OCI__START_ARGS")


# ADS has no image for Ray. Its nodes are started by our launcher, which reads the launch document instead.
@pytest.mark.parametrize("file", [file for file in JOBS if file.stem != "ray"], ids=lambda file: file.stem)
def test_each_node_gets_what_ads_gives_it(file: Path, tmp_path: Path) -> None:
    """The same variables with the same values, but for secrets and what notes name."""
    shutil.copytree(file.parent, tmp_path, dirs_exist_ok=True)
    made = convert(tmp_path, file.name)
    (job,) = yaml.safe_load(made.stack)["config"]["trainyard:jobs"]
    nodes = planned_nodes(made.stack, tmp_path, job, "base", of_platform=True)
    expected = answers_of_ads()[file.name]
    assert len(nodes) == len(expected)
    for node, given in zip(nodes, expected, strict=True):
        told = {name: str(value) for name, value in node.environment.items()}
        # ADS forgets where an argument ends, and has a variable of its own for the last ones.
        script = [" ".join(shlex.split(told.get("OCI__ENTRY_SCRIPT_ARGS", "")))]
        theirs = " ".join(given[key] for key in ("OCI__ENTRY_SCRIPT_ARGS", "OCI__ENTRY_SCRIPT_KWARGS") if key in given)
        assert script == [theirs]
        left_out = [name for name, value in given.items() if name in made.notes or value in ("", "None")]
        skipped = {*_OTHERWISE, *left_out, "OCI__ENTRY_SCRIPT_ARGS", "OCI__ENTRY_SCRIPT_KWARGS"}
        certificates = tuple(f"OCI__{part}" for part in ("CERTIFICATE", "CA_") if "certificate" in made.notes)
        skipped |= {name for name in given if name.startswith(certificates)}
        skipped |= {name for name in given if name.startswith("OCI__RUNTIME") and "code in oci://" in made.notes}
        assert {name: told.get(name) for name in given if name not in skipped} == {
            name: value for name, value in given.items() if name not in skipped
        }


# Names of the job and its user, which are others here.
_OF_THE_USER = ("PAI_FRAMEWORK_NAME", "PAI_JOB_NAME", "PAI_USER_NAME", "PAI_USERNAME")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_each_node_gets_what_openpai_gives_a_task(name: str, tmp_path: Path) -> None:
    """Every variable that OpenPAI's own code sets, with the same value but for the numbers of ports."""

    def without_ports(environment: Mapping[str, str]) -> dict[str, str]:
        ours = {key: value for key, value in environment.items() if key.startswith(("PAI_", "NVIDIA_VISIBLE"))}
        return {
            key: re.sub(r"(?<![0-9.])[0-9]{5}(?![0-9.])", "PORT", value)
            for key, value in ours.items()
            if key not in _OF_THE_USER
        }

    shutil.copy(BRING / "openpai" / f"{name}.yaml", tmp_path)
    made = convert(tmp_path, f"{name}.yaml", "--platform", "oci")
    (job,) = yaml.safe_load(made.stack)["config"]["trainyard:jobs"]
    nodes = planned_nodes(made.stack, tmp_path, job, "base")
    expected: list[dict[str, str]] = {row[0]: row[1] for row in openpai_answers()["environments"]}[name]
    assert len(nodes) == len(expected)
    addresses = tuple(f"10.0.0.{number}" for number in range(1, len(nodes) + 1))
    for rank, (node, theirs) in enumerate(zip(nodes, expected, strict=True)):
        environment = {key: str(value) for key, value in node.environment.items()}
        launch = read_launch({**environment, "TRAINYARD_LAUNCH": json.dumps({**node.launch, "rank": rank})})
        place = Place(addresses, addresses[rank], "eth0")
        ours = {**environment, **spoken_variables(launch, place, environment, str(tmp_path))}
        assert without_ports(ours) == without_ports(theirs)
        assert {key for key in ours if ours[key] == ""} == {key for key in theirs if theirs[key] == ""}


@pytest.mark.torture
def test_slurm_itself_still_answers_as_recorded(tmp_path: Path) -> None:
    packages = fetched_slurm(may_fetch=True)
    assert packages is not None
    with slurm_cluster(packages, tmp_path / "cluster") as cluster:
        assert live_answers(cluster, tmp_path) == recorded_answers()


@pytest.mark.engine
@pytest.mark.parametrize(
    ("system", "file", "options"),
    [
        ("slurm", "ddp.sbatch", ()),
        pytest.param("ads", "pytorch_alone.yaml", (), marks=pytest.mark.torture),
        pytest.param("openpai", "ddp.yaml", ("--platform", "oci"), marks=pytest.mark.torture),
        pytest.param("kubernetes", "pytorch_ddp.yaml", (), marks=pytest.mark.torture),
    ],
)
def test_a_converted_job_trains_in_a_rehearsal(system: str, file: str, options: Sequence[str], tmp_path: Path) -> None:
    """Through the plan's own rules. The scripts fail if they see other ranks than they saw there."""
    rehearsals = Rehearsals(tmp_path / "home", tmp_path / "stacks")
    shutil.copytree(BRING / system, rehearsals.stacks, ignore=lambda _, names: {*names} - {file, "train.py"})
    made = convert(rehearsals.stacks, file, *options)
    stack = yaml.safe_load(made.stack)
    (job,) = stack["config"]["trainyard:jobs"].values()
    job["code"] = "."  # of OpenPAI, it is in the image
    (rehearsals.stacks / f"Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(stack, sort_keys=False))
    report = rehearsals.report(STACK)
    assert [run["verdict"] for run in report["runs"]] == ["passed"], report


# What a stack calls otherwise, or does not have: places that are made, and names.
_NOT_COMPARED = ("displayName", "name", "workDir", "image", "ephemeral")


@pytest.mark.parametrize(
    "name", ["dask_threads", "pytorch_alone", "pytorch_git", "tensorflow_roles", "horovod_options"]
)
def test_a_stack_goes_back_to_ads(name: str, tmp_path: Path) -> None:
    """What its file said, the document says again, or a note says that it is left out."""
    file = BRING / "ads" / f"{name}.yaml"
    shutil.copytree(file.parent, tmp_path, dirs_exist_ok=True)
    made = convert(tmp_path, file.name)
    stack = tmp_path / f"Pulumi.{STACK}.yaml"
    stack.write_text(made.stack, "utf-8")
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n", "utf-8")
    told = CliRunner().invoke(main, ["plan", str(stack), "--documents", "--as", "ads"])
    assert told.exit_code == 0, told.output
    again: dict[str, set[str]] = defaultdict(set)
    for path, value in leaves(yaml.safe_load(told.stdout)):
        again[path] |= {*value}
    for path, value in leaves(yaml.safe_load(file.read_text("utf-8"))):
        noted = any(f"`{part}`" in made.notes for part in (path[1:], value[0]))
        if not noted and path.rpartition(".")[2] not in _NOT_COMPARED:
            # A command has only arguments.
            place = path.replace("kwargs", "args")
            assert {*value} <= again[place], (path, value, again[place])
    ray = CliRunner().invoke(main, ["plan", "oci-ray", "--documents", "--as", "ads"])
    assert (ray.exit_code, "ADS has no cluster" in ray.output) == (1, True)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """The words at each path. Variables have their names in theirs."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from leaves(below, f"{path}.{key}")
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield from ((f"env.{item['name']}", [str(item["value"])]) for item in value)
    else:
        words = value if isinstance(value, list) else [value]
        yield path, [word.removesuffix(".0").lower() for text in words for word in str(text).split()]
