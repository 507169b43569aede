# SPDX-License-Identifier: Apache-2.0
"""Packages are announced with their sizes, and those for cards that this machine lacks are not downloaded."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from catalog.environments import Need, choose_environment
from localcloud.environments import downloads
from localcloud.environments.downloads import (
    Download,
    describe_download_size,
    downloads_that_need_gpu,
    gpu_only_downloads,
    planned_downloads,
)
from localcloud.environments.layers import _require_without_gpu
from localcloud.environments.watched_commands import MakeError
from tests.support.wheels import write_wheel

# What pip chose for `torch` and for `xgboost` on x86-64, among others.
TORCH = [Download("torch", "2.15.0", 539_136_850), Download("nvidia-cublas", "13.1", 405_000_000)]
TORCH += [Download("triton", "3.9.0", 190_000_000), Download("sympy", "1.14", 6_200_000)]
XGBOOST = [Download("xgboost", "3.2.0", 131_748_579), Download("nvidia-nccl-cu12", "2.32", 351_526_311)]


@pytest.fixture(autouse=True)
def no_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(downloads, "_DRIVER", tmp_path / "none")


def test_pip_is_asked_what_it_would_download_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels, scratch = tmp_path / "wheels", tmp_path / "scratch"
    wheels.mkdir()
    scratch.mkdir()
    write_wheel(wheels, "tinypack", "1.0", {"tinypack/__init__.py": ""})
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    planned = planned_downloads(Path(sys.executable), ["tinypack"], Mock(), "tiny")
    assert [(package.name, package.version) for package in planned] == [("tinypack", "1.0")]
    assert list(scratch.iterdir()) == []


def test_the_size_is_announced() -> None:
    assert (
        describe_download_size(TORCH)
        == "4 packages, 1,140 MB to download (torch 539 MB, nvidia-cublas 405 MB, triton 190 MB, …)"
    )
    assert describe_download_size([Download("a", "1", None), Download("b", "1", 2_000_000)]) == (
        "2 packages, 2 MB to download (b 2 MB; the size of 1 is unknown)"
    )
    assert describe_download_size([Download("a", "1", None)]) == "1 package, of unknown size"


def test_libraries_of_cards_are_left_out_where_they_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.name for one in gpu_only_downloads(XGBOOST)] == ["nvidia-nccl-cu12"]
    assert downloads_that_need_gpu(XGBOOST) == []
    _require_without_gpu(XGBOOST, gpu_only_downloads(XGBOOST), "req.txt")
    with pytest.raises(
        MakeError, match=r"req\.txt: torch 2\.15\.0 would bring .* 595 MB .*\n.*TRAINYARD_GPU_PACKAGES=1"
    ):
        _require_without_gpu(TORCH, gpu_only_downloads(TORCH), "req.txt")
    monkeypatch.setattr(downloads, "_DRIVER", Path(__file__))
    assert gpu_only_downloads(TORCH) == [], "this machine has a card"


@pytest.mark.parametrize(
    ("need", "name"),
    [
        (Need("ray", modules=frozenset({"ray", "torch"}), requirements=("torch",)), "ray-pytorch"),
        (Need("ray", modules=frozenset({"ray", "torch"})), "ray-pytorch"),
        (Need("ray", modules=frozenset({"ray"}), requirements=("pandas",)), "ray"),
        (Need("dask", modules=frozenset({"xgboost"}), requirements=("xgboost",)), "dask-ml"),
        (Need("dask", modules=frozenset({"xgboost"}), requirements=("xgboost==1.7",)), "own"),
        (Need("dask", requirements=("tqdm",)), "own"),
    ],
)
def test_a_job_gets_the_environment_that_has_what_it_requires(need: Need, name: str) -> None:
    """What an environment has need not be downloaded, and is built for processors."""
    choice = choose_environment(need)
    assert (choice.fitting[0].name, choice.decision) == (name, "")
