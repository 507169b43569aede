# SPDX-License-Identifier: Apache-2.0
"""Valid files without findings, and broken files that git cannot store. All others are in tests/broken."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from catalog.secret_looks import looks_secret
from schemas.checks import shared_rules
from schemas.checks.run_checks import LARGEST_CODE
from schemas.judge import judge_file
from trainyard.cli.render import RENDERERS

STACK = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaavision
  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaacompany
  {access}
  {top}
  trainyard:jobs:
    one:
      framework: {framework}
      image: {image}
      shape: {shape}
      roles: {roles}
      command: {command}
      {job}
      runs: {{ base: {run} }}
"""
DEFAULTS = {
    "access": "trainyard:access: { users: { group: vision-scientists } }",
    "top": "",
    "framework": "pytorch",
    "image": "${registry}:1.4",
    "shape": "VM.GPU.A10.1",
    "roles": "{ main: 1, worker: 3 }",
    "command": "train.py",
    "job": "",
    "run": "{}",
}
DIGEST = "sha256:" + "a" * 64


def codes(folder: Path, **parts: str) -> list[str]:
    file = folder / "Pulumi.test.yaml"
    file.write_text(STACK.format(**{**DEFAULTS, **parts}))
    return [finding.code for finding in judge_file(file).findings]


FINE: dict[str, dict[str, str]] = {
    "nothing special": {},
    "a digest instead of a tag": {"image": f"${{registry}}@{DIGEST}"},
    "a tag and a digest": {"image": f"${{registry}}:latest@{DIGEST}"},
    "the stack's repository by its address": {"image": "iad.ocir.io/acme/vision/dev/training:1"},
    "the same by the long address": {"image": "ocir.us-ashburn-1.oci.oraclecloud.com/acme/vision/dev/training:1"},
    "another repository where everything may be read": {
        "access": "trainyard:access: { mode: proof-of-concept }",
        "image": "iad.ocir.io/acme/other:1",
    },
    "the smallest subnet that holds the nodes": {"top": "trainyard:network: { subnetCidr: 10.20.0.0/29 }"},
    "a subnet at the end of its network": {"top": "trainyard:network: { subnetCidr: 10.20.255.0/24 }"},
    "an existing subnet": {"top": "trainyard:network: { subnet: ocid1.subnet.oc1.iad.aaaav }"},
    "an existing VCN": {
        "top": "trainyard:network: { vcn: ocid1.vcn.oc1.iad.a, subnetCidr: 172.20.0.0/24,"
        " routeTable: ocid1.routetable.oc1.iad.a }"
    },
    "a region's name in an OCID": {"top": "trainyard:network: { subnet: ocid1.subnet.oc1.us-ashburn-1.aaaav }"},
    "another stack's network and access": {"access": "", "top": "trainyard:uses: { stack: acme/trainyard/platform }"},
    "users in a stack whose access comes from another": {"top": "trainyard:uses: { stack: a/b/c }"},
    "existing access": {"access": "trainyard:access: { existing: true, runs: training-runs }"},
    "users in notebooks": {"access": "trainyard:access: { users: { notebooks: true } }"},
    "a group and notebooks": {"access": "trainyard:access: { users: { group: g, notebooks: true } }"},
    "an environment that only begins like production": {
        "access": "trainyard:access: { mode: proof-of-concept }",
        "top": "trainyard:tags: { x: prod }",
    },
    "numbers and switches with secret names": {
        "job": 'env: { MAX_TOKENS: "512", USE_AUTH: "true", TOKENIZERS_PARALLELISM: "false" }'
    },
    "a secret in the vault by reference": {
        "top": "trainyard:vault: { vault: ocid1.vault.oc1.iad.b.a, key: ocid1.key.oc1.iad.b.a,"
        " secrets: { hub: { secure: v1:x } } }",
        "job": "env: { HUB_TOKEN: '${secret.hub}' }",
    },
    "a secret as a secret": {"job": "env: { HUB_TOKEN: { secure: v1:x } }"},
    "a shell that is asked for": {"command": "bash -c 'cd src && python train.py --out $HOME | tee log; echo done'"},
    "words of a shell in quotes": {"command": "train.py --separator '|' --filter 'a > b' --price '$x' --end ';'"},
    "a dollar at the end": {"command": "train.py --pattern ^a$ --money 5$"},
    "a launcher that is told the others": {"command": "torchrun --nnodes {nodes} --node_rank {rank} train.py"},
    "a launcher's name as an argument": {
        "framework": "dask",
        "roles": "{ scheduler: 1, worker: 2 }",
        "command": "python train.py --backend dask",
    },
    "a script called like a launcher's option": {"command": "train.py --launcher torchrun-like"},
    "placeholders of the launcher": {"command": "train.py --at {address.main} --all {addresses.worker} --me {process}"},
    "braces that are no placeholder": {"command": "train.py --json '{\"a\":1}' --set {A}"},
    "as long as it may": {"command": "timeout 24h python train.py --max-hours 24"},
    "how many tokens": {"job": "env: { MAX_TOKENS: '512', ASK_PASSWORD: 'false', BYPASS: 'no' }"},
    "tokens of a language": {"job": "env: { PAD_TOKEN: '[PAD]', EOS_TOKEN: </s>, TOKENIZER: bert }"},
    "a group of an identity domain": {"access": "trainyard:access: { users: { group: Research/All Domain Users } }"},
    "a group by its OCID": {"access": "trainyard:access: { users: { group: ocid1.group.oc1..aaaascientists } }"},
    "narrowed where it counts": {
        "access": "trainyard:access: { mode: documented, narrow: { bucket: false }, users: { group: g } }",
        "top": "trainyard:network: { mode: proof-of-concept }",
    },
    "git by SSH": {
        "top": "trainyard:network: { nat: true }",
        "job": "code: { git: { url: 'git@git.example.com:vision/train.git', commit: 9f2c1e7 } }",
    },
    "an option that only ends in token's name": {"run": '{ args: [--max-tokens, "512"] }'},
    "every documented reference": {
        "command": "train.py ${bucket} ${namespace} ${region} ${team} ${environment} ${stack} ${job} ${run}"
    },
    "all ports for the data": {"job": "ports: { data: all }"},
    "the smallest range for the data": {"job": "ports: { data: 29500-29507 }"},
    "a kernel's range among outgoing ports": {"job": "ports: { data: 40000-40100 }"},
    "Dask with a range as Dask writes it": {
        "framework": "dask",
        "roles": "{ scheduler: 1, worker: 2 }",
        "job": 'ports: { worker: "8700:8703", nanny: "3000:3003" }\n      options: { workers: 4 }',
    },
    "Dask's boosting off, its range too small": {
        "framework": "dask",
        "roles": "{ scheduler: 1, worker: 2 }",
        "job": "options: { workers: 80 }",
    },
    "elastic Horovod": {
        "framework": "horovod",
        "job": "options: { elastic: true, minNodes: 2, maxNodes: 4, fp16: true }",
    },
    "mirrored on one node": {"framework": "tensorflow", "roles": "{ main: 1 }", "job": "strategy: mirrored"},
    "parameter servers on the workers' port": {
        "framework": "tensorflow",
        "roles": "{ main: 1, worker: 2, ps: 1 }",
        "job": "strategy: parameter-server",
    },
    "a flexible shape": {"shape": "{ name: VM.Standard.E4.Flex, ocpus: 4, memoryGb: 64 }"},
    "the least and the longest": {"job": "blockStorageGb: 50\n      maximumRuntimeMinutes: 43200"},
    "files of the working directory": {"job": "keep: [snapshot.pt, ./a..b/*.csv, 'runs/**/[!x]?.pt', results/, '**']"},
    "a day's wait": {"run": "{ until: finished }"},
    "all must succeed, in runs of their own": {
        "roles": "{ main: 1, worker: { replicas: 3, completion: { minSucceeded: -1 } } }"
    },
    "fewer successes in node groups": {
        "roles": "{ main: 1, worker: { replicas: 3, completion: { minSucceeded: 2 } } }",
        "job": "layout: node-groups",
    },
    "git inside OCI": {
        "job": "code: { git: { url: 'https://devops.scmservice.us-ashburn-1.oci.oraclecloud.com/x', commit: 9f2c1e7 } }"
    },
    "commits of digits alone, in quotes": {
        "top": "trainyard:network: { nat: true }",
        "job": "code: { git: { url: 'https://git.example.com/x.git', commit: '1234567' } }",
    },
    "a module rather than a script": {"command": "python -m training.main"},
    "a network that Oracle published for the shape": {
        "shape": "BM.GPU.H200.8",
        "job": "env: { NCCL_IB_HCA: '=mlx5_0,mlx5_3:1', NCCL_IB_TC: '41', NCCL_IB_TIMEOUT: '25', NCCL_NET: IB }",
    },
    "virtual functions of such a network": {"shape": "BM.GPU4.8", "job": "env: { NCCL_IB_HCA: mlx5 }"},
    "no network but the subnet": {"job": "env: { NCCL_IB_DISABLE: '1', NCCL_NET: Socket, FI_PROVIDER: tcp }"},
    "AWS's image without its library": {
        "image": "${registry}:1.13.1-gpu-py38-cu117-ubuntu20.04-sagemaker",
        "job": "env: { NCCL_NET_PLUGIN: none }",
    },
}


@pytest.mark.parametrize("parts", FINE.values(), ids=FINE.keys())
def test_what_is_fine_is_not_complained_about(parts: dict[str, str], tmp_path: Path) -> None:
    assert codes(tmp_path, **parts) == []


@pytest.mark.parametrize(
    ("shape", "variables", "code"),
    [
        ("VM.GPU.A10.1", "NCCL_IB_HCA: mlx5", "TY839"),
        ("BM.GPU.H100.8", "NCCL_IB_TC: '106'", "TY839"),
        ("BM.GPU.H100.8", "NCCL_IB_HCA: 'mlx5_2,mlx5_3'", "TY839"),
        ("BM.GPU.H100.8", "NCCL_NET: AWS Libfabric", "TY838"),
        ("VM.GPU.A10.1", "NCCL_NET: IB", "TY838"),
    ],
)
def test_what_nccl_is_told_fits_the_network(shape: str, variables: str, code: str, tmp_path: Path) -> None:
    assert codes(tmp_path, shape=shape, job=f"env: {{ {variables} }}") == [code]
    assert codes(tmp_path, shape=shape, run=f"{{ env: {{ {variables} }} }}") == [code]


def test_a_code_folder_that_is_too_large(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text("")
    with (code / "data.bin").open("wb") as file:
        file.truncate(LARGEST_CODE + 1)
    assert codes(tmp_path, job="code: ./code") == ["TY806"]
    (code / "data.bin").unlink()
    assert codes(tmp_path, job="code: ./code") == []


def test_an_empty_code_folder_and_one_behind_a_link_to_elsewhere(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "code", elsewhere):
        folder.mkdir(parents=True)
    (elsewhere / "train.py").write_text("")
    (project / "link").symlink_to(elsewhere)
    assert codes(project, job="code: ./code") == ["TY804"]
    assert codes(project, job="code: ./link") == ["TY805"]


def test_code_anywhere_in_the_project_is_inside(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "train.py").write_text("")
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    assert codes(stacks, job="code: ../train", command="python3 ./train.py --epochs 3") == []


def test_the_word_before_a_shell_s_sign_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(STACK.format(**{**DEFAULTS, "command": "train.py --hidden hunter2; echo done"}))
    findings = judge_file(file).findings
    assert [finding.code for finding in findings] == ["TY819"]
    assert "hunter2" not in str(findings)


@pytest.mark.parametrize("word", ["token", "PASSWORD_", "x", "${a}", "://a:", "A "])
@pytest.mark.parametrize("place", ["command", "image", "env"])
def test_no_text_takes_long_to_be_judged_and_shown(place: str, word: str, tmp_path: Path) -> None:
    """A pattern that scanned the rest of the text at each of 20,000 places took a minute. One pass takes a second."""
    long = json.dumps(word * 20_000)
    file = tmp_path / "Pulumi.long.yaml"
    parts = {"job": f"env: {{ A: {long} }}"} if place == "env" else {place: long}
    file.write_text(STACK.format(**{**DEFAULTS, **parts}))
    started = time.process_time()
    judged = judge_file(file)
    for render in RENDERERS.values():
        assert render([judged], False)
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("framework", "command"),
    [
        ("pytorch", "torchrun train.py"),
        ("pytorch", "/opt/conda/bin/torchrun --nproc_per_node 2 train.py"),
        ("pytorch", "python3 -m torch.distributed.run train.py"),
        ("pytorch", "accelerate launch train.py"),
        ("horovod", "horovodrun -np 4 python train.py"),
        ("horovod", "mpirun -np 4 python train.py"),
        ("horovod", "python -m horovod.runner.launch -np 4 python train.py"),
        ("pytorch", "horovodrun -np 4 python train.py"),
        ("horovod", "torchrun --nproc_per_node 2 train.py"),
    ],
)
def test_what_the_launcher_stands_for_is_warned_of(framework: str, command: str, tmp_path: Path) -> None:
    assert codes(tmp_path, framework=framework, command=command) == ["TY818"]


def test_a_code_folder_is_measured_as_it_travels(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "elsewhere.py").write_text("")
    folder = tmp_path / "train"
    (folder / ".venv").mkdir(parents=True)
    with (folder / ".venv" / "large.so").open("wb") as large:
        large.truncate(LARGEST_CODE + 1)
    (folder / "train.py").write_text("")
    (folder / "linked.py").symlink_to(tmp_path / "elsewhere.py")
    assert codes(tmp_path, job="code: ./train", command="train.py") == []
    assert codes(tmp_path, job="code: ./train", command="linked.py") == ["TY809"]


def test_an_own_framework_drives_the_checks_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "ring.toml").write_text(
        'name = "ring"\nsummary = "s"\nrank = "r"\nreserved = ["RING_SIZE"]\n'
        '[roles.node]\nminimum = 2\nmode = "WORKER"\nwhy = "a ring has two"\nruns_command = true\n'
        '[[ports]]\nlabel = "ring"\nlistens = ["node"]\nreached_from = ["node"]\ndefault = 7000\nwhy = "w"\n'
        '[options.fast]\ntype = "boolean"\ndefault = false\nmeaning = "m"\n'
    )
    ring = {"top": "trainyard:frameworks: { ring: ring.toml }", "framework": "ring"}
    assert codes(tmp_path, **ring, roles="{ node: 2 }", job="options: { fast: true }") == []
    assert codes(tmp_path, **ring, roles="{ node: 1 }", job="env: { RING_SIZE: '1' }") == ["TY404", "TY501"]
    assert codes(tmp_path, **ring, roles="{ node: 2 }", job="ports: { rnig: 7001 }") == ["TY201"]


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----", True),
        ("ghp_" + "a1B2" * 9, True),
        ("hf_" + "a1B2" * 8, True),
        ("AKIA" + "A1B2" * 4, True),
        ("postgres://u:p@host/db", True),
        ("q7Xw2LmN8pRt5VzYb3KdHs6JfGc9TnQe4WaZxU1v", True),
        ("https://example.com/a/path", False),
        ("9f2c1e7d9f2c1e7d9f2c1e7d9f2c1e7d9f2c1e7d", False),
        ("a" * 64, False),
        ("ocid1.bucket.oc1.iad.aaaaaaaa", False),
        ("/mnt/data/imagenet/train/part-00001-of-01024", False),
        ("meta-llama/Meta-Llama-3-70B-Instruct", False),
        ("TheBloke/Llama-2-70B-Chat-GPTQ-4bit-128g-actorder", False),
        ("sentence-transformers/all-MiniLM-L6-v2-Finetuned", False),
        ("experiment-2024-05-01-ResNet50-BatchSize256-LR0", False),
        ("/home/datascience/Conda/Envs/PyTorch21_p39_gpu_v1", False),
        ("/opt/train/DistributedDataParallel2Trainer/FSDPShardedCheckpoint20240501V2", False),
        ("VM-Standard-E4-Flex-4OCPU-64GB-Frankfurt", False),
        ("AccountName=x;AccountKey=q7Xw2LmN8pRt5VzYb3KdHs6JfGc9TnQe==", True),
        ("https://x@git.example.com/a", False),
        ("https://q7Xw2LmN8pRt5VzYb3Kd@git.example.com/a", True),
        ("", False),
    ],
)
def test_what_looks_like_a_secret(value: str, secret: bool) -> None:
    assert looks_secret(value) is secret


def test_rules_are_told_apart_by_their_codes_and_say_what_is_wrong() -> None:
    for code, rule in shared_rules().items():
        assert code == rule.code
        assert rule.title
        assert not rule.title.endswith(".")
