# SPDX-License-Identifier: Apache-2.0
"""A node's accelerators, by a driver that this test makes: how busy they are, and whether all planned ones are
there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from launcher import exits
from tests.support.nodes import ROOT, gang, nodes
from tests.support.programs import require_program

# Three GPUs, of which one is lost. The others have 80 GB.
_NVML = """
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return INIT; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{ *device = (void *)(index + 1UL); return index == 2 ? 15 : 0; }
int nvmlDeviceGetUtilizationRates(void *device, utilization *busy) { busy->gpu = 40 * (unsigned long)device; return 0; }
int nvmlDeviceGetMemoryInfo(void *device, memory *found) { found->total = 85520809984ULL; return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned int length) { __builtin_strcpy(text, "535.54.03"); return 0; }
"""
# The third start of a job of OpenPAI: nobody hopes for another machine any more.
_THIRD_START = {
    "PAI_CURRENT_TASK_ROLE_NAME": "main", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
    "PAI_HOST_IP_main_0": "127.0.0.1", "PAI_JOB_NAME": "me~devices", "FC_FRAMEWORK_ATTEMPT_ID": "2",
}  # fmt: skip
# A job run of OCI has a machine of its own.
_ELSEWHERE, _FINAL = exits.TEMPORARY, 132


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folders with the library of a driver: of one that answers, and of one that does not."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("answers", "fails")}
    for (name, folder), code in zip(folders.items(), (0, 18), strict=True):
        (folder / f"{name}.c").write_text(_NVML)
        words = [require_program("gcc"), "-shared", "-fPIC", f"-DINIT={code}", "-o", "libnvidia-ml.so.1", f"{name}.c"]
        subprocess.run(words, cwd=folder, check=True)
    return folders


def test_activity_of_nvidia_gpus_is_read_from_the_driver(drivers: Mapping[str, Path]) -> None:
    asks = "from launcher.devices import Gpus; print(Gpus().readable, Gpus().busiest())"
    answer = subprocess.run(
        [sys.executable, "-c", asks], env={**os.environ, "LD_LIBRARY_PATH": str(drivers["answers"])},
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert answer.stdout.split() == ["True", "80"]


_LOST = "main-0: 2 of 3 planned NVIDIA GPUs are there (driver 535.54.03)"


@pytest.mark.parametrize(
    ("driver", "planned", "variables", "code", "words"),
    [
        ("answers", {"devices": 2, "kind": "nvidia", "deviceGb": 80}, {}, 0, ""),
        ("answers", {"devices": 2}, {}, 0, ""),
        ("answers", {"devices": 3, "kind": "nvidia"}, {}, _ELSEWHERE, _LOST),
        ("answers", {"devices": 3, "kind": "nvidia"}, _THIRD_START, _FINAL, _LOST),
        # A local environment stands in for the image, so the machine is another one, too.
        ("answers", {"devices": 3, "kind": "nvidia"}, {"TRAINYARD_ENVIRONMENT": "pytorch"}, 0, ""),
        ("answers", {"devices": 3}, {}, _ELSEWHERE, "main-0: 2 of 3 planned accelerators are there"),
        (
            "answers", {"devices": 2, "kind": "nvidia", "deviceGb": 141}, {}, _ELSEWHERE,
            "main-0: 2 of 2 NVIDIA GPUs have 86 GB of memory, and 141 GB are planned (driver 535.54.03)",
        ),
        (
            "fails", {"devices": 1, "kind": "nvidia"}, {}, _ELSEWHERE,
            "main-0: 0 of 1 planned NVIDIA GPUs are there (the driver does not answer (NVML error 18))",
        ),
    ],
)  # fmt: skip
def test_a_node_without_its_planned_devices_does_not_train(
    drivers: Mapping[str, Path], tmp_path: Path, driver: str, planned: Mapping[str, Any],
    variables: Mapping[str, str], code: int, words: str,
) -> None:  # fmt: skip
    expects = {"version": 1, "preflight": "on", "connections": [], "nodes": [{"roles": ["main"], **planned}]}
    with nodes(None, tmp_path, gang(nodes=1), "devices") as run:
        run.script("print('trains')")
        run.changes = {"peers": {"from": "openpai"}} if "PAI_JOB_NAME" in variables else {}
        run.start(LD_LIBRARY_PATH=str(drivers[driver]), TRAINYARD_EXPECTS=json.dumps(expects), **variables)
        assert run.codes() == [code]
        assert ("trains" in run.shown()) == (not code)
        assert words in run.shown()


def test_with_warn_a_node_trains_with_fewer_devices_and_what_is_short_is_only_said(
    drivers: Mapping[str, Path], tmp_path: Path
) -> None:
    planned = {"roles": ["main"], "devices": 8, "diskGb": 10**7, "shmMb": 10**9}
    expects = {"version": 1, "preflight": "warn", "connections": [], "nodes": [planned]}
    with nodes(None, tmp_path, gang(nodes=1), "warned") as run:
        run.script("print('trains')")
        run.start(LD_LIBRARY_PATH=str(drivers["answers"]), TRAINYARD_EXPECTS=json.dumps(expects))
        assert run.codes() == [0]
        shown = run.shown()
        assert "preflight: main-0: 2 of 8 planned accelerators are there (training starts all the same" in shown
        assert "in all, and 1e+07 GB are planned" in shown
        assert "MiB, and 1e+09 are planned" in shown
