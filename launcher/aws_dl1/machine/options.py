# SPDX-License-Identifier: Apache-2.0
"""How containers are started: docker's arguments, and what every container with EFA is told. Pure functions."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.aws_dl1.accelerators import Accelerator
from launcher.aws_dl1.fabric import version_numbers

# As the documents of accelerators start containers. --init reaps the orphans of training. Only root may read what the
# machine shows to a container, and the recipes of launcher/images name another user.
_ALWAYS = ("--user=0:0", "--cap-add=sys_nice", "--net=host", "--ipc=host", "--init")
_EFA = ("--device=/dev/infiniband", "--ulimit=memlock=-1:-1")

# The container's read-only mounts.
LAUNCHER, CODE, START = "/opt/trainyard/launcher", "/opt/trainyard/code", "/opt/trainyard/start"
# The mount that it may write to, on the local disk if the machine has one. It is removed after the start.
SCRATCH, SCRATCH_VARIABLE = "/opt/trainyard/scratch", "TRAINYARD_SCRATCH"
KERNEL_VARIABLE = "TRAINYARD_MACHINE_KERNEL"

# How many EFA interfaces the machine has, for images whose libraries use them by themselves.
EFA_VARIABLE = "TRAINYARD_EFA_INTERFACES"
# The folders of images with EFA's libraries.
LIBRARIES = ("/opt/amazon/openmpi/lib", "/opt/amazon/efa/lib")

# With at least both versions, libfabric's EFA provider is fork-safe without FI_EFA_FORK_SAFE.
_FORK_SAFE_KERNEL, _FORK_SAFE_RDMA_CORE = (5, 13), (35,)


def fork_safety(kernel: str, rdma_core: str) -> dict[str, str]:
    """FI_EFA_FORK_SAFE, unless kernel and rdma-core are new enough. An unknown version counts as old."""
    if version_numbers(kernel) >= _FORK_SAFE_KERNEL and version_numbers(rdma_core) >= _FORK_SAFE_RDMA_CORE:
        return {}
    return {"FI_EFA_FORK_SAFE": "1"}


def library_path(inherited: str, there: Sequence[str]) -> str:
    """LD_LIBRARY_PATH: the folders that the image has of those that come first, then the image's own ones."""
    own = [*there]
    return ":".join([*own, *(part for part in inherited.split(":") if part and part not in own)])


def run_words(
    name: str, image: str, program: str, accelerator: Accelerator, efa_interfaces: int,
    environment: Mapping[str, str], file: Path, volumes: Mapping[str, Path], scratch: Path,
) -> list[str]:  # fmt: skip
    """`docker run` for one container with a Python program. The run's variables are in a file, because all users can
    see the arguments of a process."""
    shown = [f"--volume={place}:{target}:ro" for target, place in volumes.items()]
    shown.append(f"--volume={scratch}:{SCRATCH}")
    return [
        "docker", "run", "--detach", f"--name={name}", *accelerator.docker_words(),
        *(word for item in environment.items() for word in ("-e", "=".join(item))),
        *_ALWAYS, *(_EFA if efa_interfaces else ()), f"--env-file={file}", *shown, "--entrypoint=python3", image,
        "-I", "-c", program,
    ]  # fmt: skip


def isolated_program(module: str, arguments: str = "") -> str:
    """A program of the launcher for `python -I -c`. So no module from PYTHONPATH or the working directory, which belong
    to the image and the team, can replace it. Training gets both unchanged."""
    return f"import sys; sys.path.insert(0, {LAUNCHER!r}); from {module} import main; sys.exit(main({arguments}))"


def kernel_release() -> str:
    """The release of the machine's kernel, which its containers share."""
    return platform.release()
