# SPDX-License-Identifier: Apache-2.0
"""The table of environments serves every framework, and each example's code finds one that has its modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catalog import frameworks
from catalog.environments import Need, choose_environment
from catalog.imports import imported_modules
from localcloud.environments.environment_rows import HERE, environment_rows
from tests.support.examples import STACKS

LOCKS = sorted((HERE / "requirements").glob("*.txt"))
# Example code -> framework, strategy and the environment its jobs run in.
CODE = {
    "local": ("dask", None, "own"),
    "examples/accelerate": ("accelerate", None, "pytorch-libraries"),
    "examples/cifar10": ("pytorch", None, "pytorch"),
    "examples/openpai": ("pytorch", None, "pytorch"),
    "examples/dask-lightgbm": ("dask", None, "dask-ml"),
    "examples/dask-ml": ("dask", None, "dask-ml"),
    "examples/dask-sklearn": ("dask", None, "dask-ml"),
    "examples/dask-xgboost": ("dask", None, "dask-ml"),
    "examples/horovod-pytorch": ("horovod", "pytorch", "horovod-pytorch"),
    "examples/horovod-tensorflow": ("horovod", "tensorflow", "horovod-tensorflow"),
    "examples/imagenet-ddp": ("pytorch", None, "pytorch"),
    "examples/lightning": ("lightning", None, "pytorch-libraries"),
    "examples/pytorch-ddp": ("pytorch", None, "pytorch"),
    "examples/ray": ("ray", None, "ray"),
    "examples/resnet-ddp": ("pytorch", None, "pytorch"),
    "examples/tensorflow-mirrored": ("tensorflow", "mirrored", "tensorflow-2.21"),
    "examples/tensorflow-multi-worker": ("tensorflow", "multi-worker-mirrored", "tensorflow-2.21"),
    "examples/tensorflow-parameter-server": ("tensorflow", "parameter-server", "tensorflow-2.21"),
    "examples/torchrun": ("torchrun", None, "pytorch"),
    "examples/trainium-ddp": ("pytorch", None, "pytorch"),
}


def test_every_framework_is_served() -> None:
    served = {framework.partition("/")[0] for row in environment_rows().values() for framework in row.serves}
    assert served == set(frameworks.framework_names())


@pytest.mark.parametrize("code", CODE)
def test_an_example_gets_the_environment_that_has_its_modules(code: str) -> None:
    framework, strategy, name = CODE[code]
    assert choose_environment(Need(framework, strategy, imported_modules(STACKS / code))).fitting[0].name == name


def test_every_example_with_code_is_in_the_table() -> None:
    folders = {f"examples/{folder.name}" for folder in (STACKS / "examples").iterdir() if folder.is_dir()}
    assert folders - {"examples/own-framework"} <= set(CODE)


def test_imports_are_read_not_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os.path, numpy as np\nfrom torch.nn import Linear\nraise SystemExit\n")
    (tmp_path / "b.py").write_text("def f():\n    from . import a\n    import dask\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "frames.py").write_text("from dask import dataframe\n")
    (tmp_path / "broken.py").write_text("import (\n")
    (tmp_path / "notes.txt").write_text("import tensorflow\n")
    assert imported_modules(tmp_path) == {"os", "numpy", "torch", "dask", "pandas", "pyarrow"}
    assert imported_modules(tmp_path / "b.py") == {"dask"}
    assert imported_modules(tmp_path / "none.py") == frozenset()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_locks_are_exact_hashed_and_name_no_index(lock: Path) -> None:
    text = lock.read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", "\n" + text)[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+", entry), entry[:80]
        assert "--hash=sha256:" in entry
    assert "://" not in text
    assert lock.with_suffix(".in").exists()


def test_every_lock_belongs_to_a_row() -> None:
    assert {path for row in environment_rows().values() for path in row.lists} == set(LOCKS)
