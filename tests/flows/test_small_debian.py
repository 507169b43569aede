# SPDX-License-Identifier: Apache-2.0
"""PyTorch 2 in its small Debian, with a job's own packages over it: pip respects its versions, and its loader finds
only its own libraries."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from localcloud.environments import cache
from localcloud.environments.find import MissingEnvironment, find_environment
from localcloud.environments.layers import LayerRequirements, make_layer
from tests.support.environments import Told
from tests.support.wheels import write_wheel

# What a script sees in a layer over PyTorch, and in a process that it starts as multiprocessing does.
SEEN = """
import json, subprocess, sys
import extra, torch, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, 1, True)
with open("/proc/self/maps") as maps:
    libraries = {line.split(maxsplit=5)[5].strip() for line in maps if ".so" in line}
child = subprocess.run([sys.executable, "-c", "import sys, extra; print(sys.prefix)"], capture_output=True, text=True)
print(json.dumps({
    "extra": extra.__file__, "python": sys.executable, "child": child.stdout.strip(), "torch": torch.__version__,
    "libraries": sorted(libraries), "mpi": dist.is_mpi_available(), "name": open("/proc/self/comm").read().strip(),
}))
"""


def test_a_layer_over_pytorch_has_its_libraries_and_nothing_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    base = find_environment("pytorch")
    if isinstance(base, MissingEnvironment):
        pytest.skip(f"not seen: {base.reason}; {base.remedy}")
    if not (base.interpreter.parent.parent / "lib/trainyard").exists():
        pytest.skip("this interpreter's own PyTorch is used")
    for name, value in {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    write_wheel(tmp_path, "extra", "1.0", {"extra/__init__.py": ""}, ("torch>=2.1", "torchvision", "numpy>=2"))
    lines = ("extra", "torch>=2.3", "torchvision")
    made = make_layer(
        base, LayerRequirements("\n".join([*lines, ""]), f"{os.getpid():016x}", "req.txt", ["req.txt:1"] * 3), Told()
    )
    folder = made.interpreter.parent.parent
    try:
        done = subprocess.run([made.interpreter, "-c", SEEN], capture_output=True, text=True, check=True)
    finally:
        cache.clear_folder(folder)
    seen = json.loads(done.stdout)
    assert seen["extra"].startswith(f"{folder}/lib/")
    assert (seen["python"], seen["child"], seen["name"]) == (str(made.interpreter), str(folder), "python")
    assert (seen["torch"], seen["mpi"]) == ("2.6.0+debian", False)
    below = str(base.interpreter.parent.parent)
    assert [one for one in seen["libraries"] if not one.startswith(below)] == []


# A model of DDP holds its process group in a cycle. What is registered first runs last, when the interpreter ends.
ENDS = """
import atexit, gc
atexit.register(print, "the interpreter ends")
import torch
gc.disable()
class Group:
    def __init__(self): self.own = self
    def __del__(self): print("the group is collected")
Group()
"""


def test_a_group_is_collected_before_the_interpreter_ends() -> None:
    """Its threads may hold a tensor: Python would end them in the middle of a destructor, and the process aborts."""
    base = find_environment("pytorch")
    if isinstance(base, MissingEnvironment):
        pytest.skip(f"not seen: {base.reason}; {base.remedy}")
    if not (base.interpreter.parent.parent / "lib/trainyard").exists():
        pytest.skip("this interpreter's own PyTorch is used")
    said = subprocess.run([base.interpreter, "-c", ENDS], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["the group is collected", "the interpreter ends"]


def test_a_ray_node_reserves_little_memory_for_objects() -> None:
    """Nodes of the local cloud share one machine, and each of Ray's would keep 30 % of its memory."""
    ray = find_environment("ray")
    if isinstance(ray, MissingEnvironment):
        pytest.skip(f"not seen: {ray.reason}; {ray.remedy}")
    ask = "from ray._private import ray_constants as limits; print(limits.DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES)"
    said = subprocess.run(
        [ray.interpreter, "-c", ask], env={**os.environ, **ray.variables}, capture_output=True, text=True, check=True
    )
    assert int(said.stdout) == 500_000_000
