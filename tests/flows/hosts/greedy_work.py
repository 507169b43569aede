# SPDX-License-Identifier: Apache-2.0
"""The part of `test_hosts_ways_out.py` that runs on a small, separate disk. Greedy runs use as many resources as they
can, in a cloud that limits them by control groups, or only by its watcher. Prints as JSON the result of each run, and
the state of the machine.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import oci

from localcloud import control
from tests.flows.hosts.ways_out import GREEDY
from tests.support.cloud_fixture import Clients, local_cloud
from tests.support.cloud_world import World

# Enough files that the watcher of a busy machine checks before all of them are used.
SIZE, FILES, MEMORY_GIB = "2g", 300_000, 1
_PRELUDE = "import mmap, os, socket, time\n"
_ON_DISK = "disk", "files"
_MORE_GIB = 8  # the disk is in memory here


def main(folder: Path, held: bool) -> None:
    options = f"size={SIZE},nr_inodes={FILES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    if not held:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/sys/fs/cgroup"], check=True)
    with local_cloud(folder / "cloud") as cloud:
        world = World(Clients(cloud))
        told: dict[str, Any] = {}
        living = {way.name: _start(world, way.code) for way in GREEDY if not _fills_disk(way.name)}
        told |= {name: _ended(world, run) for name, run in living.items()}
        for way in GREEDY:  # one after the other: they share the disk
            if _fills_disk(way.name):
                told[way.name] = _ended(world, _start(world, way.code, _MORE_GIB))
        last = world.run(world.job("print('still here')"))
        told["afterwards"] = _ended(world, last)
        told["server"] = control.find_running_cloud(cloud.home) is not None
    print(json.dumps(told))


def _fills_disk(name: str) -> bool:
    return any(word in name for word in _ON_DISK)


def _start(world: World, script: str, memory: int = MEMORY_GIB) -> Any:
    infrastructure = oci.data_science.models.ManagedEgressStandaloneJobInfrastructureConfigurationDetails(
        shape_name="VM.Standard.E4.Flex", block_storage_size_in_gbs=50,
        job_shape_config_details=oci.data_science.models.JobShapeConfigDetails(ocpus=1, memory_in_gbs=memory),
    )  # fmt: skip
    return world.run(world.job(_PRELUDE + script, job_infrastructure_configuration_details=infrastructure))


def _ended(world: World, run: Any) -> list[str]:
    done = world.finished(run)
    return [done.lifecycle_state, done.lifecycle_details, *(line[:200] for line in world.lines(run)[-1:])]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "held")
