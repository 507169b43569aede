# SPDX-License-Identifier: Apache-2.0
"""What `check` makes of scripts. The lines are those of tutorials and of libraries' first pages, not of the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.judge import judge_file

STACK = """\
config:
  oci:region: us-ashburn-1
  trainyard:team: vision
  trainyard:environment: dev
  trainyard:compartment: ocid1.compartment.oc1..aaaaaaaavision
  trainyard:tenancy: ocid1.tenancy.oc1..aaaaaaaacompany
  trainyard:access: {{ users: {{ group: vision-scientists }} }}
  trainyard:jobs:
    one:
      framework: {framework}
      image: ${{registry}}:1.4
      shape: {{ name: VM.Standard.E4.Flex, ocpus: 1, memoryGb: 8 }}
      roles: {roles}
      code: ./code
      command: {command}
      {more}
      runs: {{ base: {{}} }}
"""
ROLES = {"pytorch": "{ main: 1, worker: 1 }", "dask": "{ scheduler: 1, worker: 2 }", "ray": "{ head: 1, worker: 1 }"}
ASKED = {"TY4000", "TY4001", "TY8000", "TY8001", "TY8002"}


def found(
    folder: Path, script: str, framework: str = "pytorch", command: str = "train.py", more: str = ""
) -> list[str]:
    """The findings about the script: the code, and the message."""
    (folder / "code").mkdir()
    (folder / "code" / "train.py").write_text(script)
    (folder / "code" / "own").mkdir()
    (folder / "code" / "own" / "config.json").write_text("{}")
    file = folder / "Pulumi.test.yaml"
    file.write_text(STACK.format(framework=framework, roles=ROLES[framework], command=command, more=more))
    return [f"{one.code} {one.message}" for one in judge_file(file).findings if one.code in ASKED]


@pytest.mark.parametrize(
    "script",
    [
        "import tensorflow as tf\n(x, y), _ = tf.keras.datasets.mnist.load_data()",
        "from tensorflow.keras.datasets import cifar10\ncifar10.load_data()",
        "from keras.datasets.imdb import load_data\nload_data(num_words=1)",
        "from keras.applications import ResNet50\nmodel = ResNet50(include_top=False)",
        "import torchvision\ntorchvision.datasets.CIFAR10(root='./data', train=True, download=True)",
        "from torchvision.datasets import MNIST\ndef main():\n    return MNIST('.', download=True)",
        "from datasets import load_dataset\nds = load_dataset('glue', 'mrpc')",
        "from transformers import AutoTokenizer\nAutoTokenizer.from_pretrained('bert-base-cased')",
        "from transformers import AutoModel\nNAME = 'org/model'\nAutoModel.from_pretrained(NAME)",
        "import transformers as t\nt.BertModel.from_pretrained(pretrained_model_name_or_path='bert-base-cased')",
        "from huggingface_hub import snapshot_download\nsnapshot_download('org/model')",
        "import urllib.request\nurllib.request.urlretrieve('https://example.org/a.zip', 'a.zip')",
        "from urllib.request import urlopen\nurlopen(f'https://example.org/{1}')",
        "import requests\nrequests.get('https://example.org/data.csv', timeout=9)",
        "import pandas as pd\npd.read_csv('https://example.org/data.csv')",
        "import os\nos.system('pip install -q tqdm')",
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'tqdm'])",
        "import subprocess\nsubprocess.run('cd /tmp && wget https://example.org/a', shell=True)",
        "from sklearn.datasets import fetch_openml\nfetch_openml('mnist_784')",
        "import tensorflow_datasets as tfds\ntfds.load('mnist')",
        "import torch\ntorch.hub.load('pytorch/vision', 'resnet50')",
        "import nltk\nnltk.download('punkt')",
    ],
)
def test_a_script_that_downloads_is_found(tmp_path: Path, script: str) -> None:
    (told,) = found(tmp_path, script)
    assert told.startswith("TY8001 train.py:")


@pytest.mark.parametrize(
    "script",
    [
        "import torchvision\ntorchvision.datasets.CIFAR10(root='./data', train=True)",
        "import torchvision\ntorchvision.datasets.CIFAR10('./data', download=False)",
        "from datasets import load_dataset\nload_dataset('csv', data_files='train.csv')",
        "from datasets import load_dataset\nload_dataset('./local')",
        "from transformers import AutoModel\nAutoModel.from_pretrained('own')",
        "from transformers import AutoModel\nAutoModel.from_pretrained('bert', local_files_only=True)",
        "import sys\nfrom transformers import AutoModel\nAutoModel.from_pretrained(sys.argv[1])",
        "from keras.applications import ResNet50\nResNet50(weights=None)",
        "from keras.applications.resnet50 import preprocess_input\npreprocess_input(1)",
        "import requests\nrequests.post('http://10.20.0.2:8080/metrics')",
        "import urllib.request\nurllib.request.urlopen('http://localhost:8265')",
        "import requests, sys\nrequests.get(f'http://[{sys.argv[1]}]:8080/metrics')",
        "import pandas as pd\npd.read_csv('data.csv')",
        "import os\nos.system('nvidia-smi')",
        "def load_data():\n    return 1\nload_data()",
    ],
)
def test_a_script_that_does_not_download_is_not(tmp_path: Path, script: str) -> None:
    assert found(tmp_path, script) == []


def test_a_command_that_installs_packages_is_found(tmp_path: Path) -> None:
    (told,) = found(tmp_path, "", command="bash -c 'pip install tqdm && python train.py'")
    assert told.startswith("TY8001 `pip install` downloads")


def test_a_script_that_python_cannot_read_is_named_with_its_line(tmp_path: Path) -> None:
    (told,) = found(tmp_path, "import torch\n\nfor step in range(3)\n    pass\n")
    assert told.startswith("TY8000 train.py:3: ")
    assert "expected ':' in `for step in range(3)`" in told


@pytest.mark.parametrize("script", ["from xgboost import dask", "import lightgbm as lgb", "import xgboost.dask as d"])
def test_boosting_on_dask_needs_its_ports(tmp_path: Path, script: str) -> None:
    (told,) = found(tmp_path, script, "dask")
    assert told.startswith("TY4000 train.py:1 imports ")


def test_with_its_ports_boosting_is_fine(tmp_path: Path) -> None:
    assert found(tmp_path, "import xgboost.dask", "dask", more="options: { boosting: true }") == []


def test_checkpoints_of_ray_train_need_storage_of_all_nodes(tmp_path: Path) -> None:
    checkpoint = "import ray.train\nray.train.report({}, checkpoint=ray.train.Checkpoint.from_directory('x'))\n"
    (told,) = found(tmp_path, checkpoint, "ray")
    assert told.startswith("TY4001 train.py:2 ")
    (tmp_path / "address").mkdir()
    config = "ray.train.RunConfig(storage_path='s3://bucket/runs')\n"
    assert found(tmp_path / "address", checkpoint + config, "ray") == []
