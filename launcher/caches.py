# SPDX-License-Identifier: Apache-2.0
"""Files that a run makes or downloads again by itself, as rows. They are not kept with what it leaves behind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Programs mark their caches with such a file (https://bford.info/cachedir/).
_TAG, _SIGNATURE = "CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"


@dataclass(frozen=True)
class Cache:
    """Names of files, and of folders with a slash behind them. `at_top`: only directly in the working directory.

    `named`: a result may lie there all the same, so the log names what is not kept.
    """

    names: tuple[str, ...]
    why: str
    named: bool = False
    at_top: bool = False


CACHES = (
    Cache(("__pycache__/", "*.pyc", "*.pyo"), "Python makes it again from the source"),
    Cache(
        (".cache/", ".keras/", ".torch/", "nltk_data/", "scikit_learn_data/", "tensorflow_datasets/", "seaborn-data/"),
        "libraries download it again: models of a hub, data sets, packages",
    ),
    Cache((".triton/", ".nv/", "torchinductor_*/", "torch_extensions/"), "compiled again for the node's own machine"),
    Cache((".config/", ".matplotlib/", ".ipython/", ".jupyter/"), "settings that programs write when they start"),
    Cache((".git/", ".hg/", ".svn/"), "a repository is kept where it was cloned from"),
    Cache((".venv/", ".local/", ".conda/", "site-packages/", "node_modules/", "*.egg-info/"), "installed packages"),
    Cache((".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".ipynb_checkpoints/"), "notes of tools to themselves"),
    Cache(
        ("dask-scratch-space/", "dask-worker-space/", "joblib_memmapping_folder_*/", "pymp-*/", "torchelastic_*/"),
        "what frameworks put there while they run",
    ),
    Cache(("trainyard-[0-9]*/",), "a launcher's own folder: output and checkpoints are kept from there"),
    Cache(
        ("MNIST/", "FashionMNIST/", "KMNIST/", "QMNIST/", "EMNIST/", "cifar-*-batches-py/", "cifar-100-python/"),
        "torchvision downloads such a data set",
        named=True,
    ),
    Cache(("cifar-*-python.tar.gz",), "torchvision downloads such a data set", named=True),
    Cache(("data/", "dataset/", "datasets/"), "scripts download data into such a folder", named=True, at_top=True),
)


def cache_of(name: str, is_folder: bool) -> Cache | None:
    """The row of one file or folder, by its path below the working directory."""
    last = name.rpartition("/")[2] + "/" * is_folder
    for row in CACHES:
        if not (row.at_top and "/" in name) and any(fnmatchcase(last, pattern) for pattern in row.names):
            return row
    return None


def is_tagged(folder: int) -> bool:
    """Whether an open folder says of itself that it is a cache."""
    try:
        tag = os.open(_TAG, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return False
    try:
        return os.read(tag, len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False
    finally:
        os.close(tag)
