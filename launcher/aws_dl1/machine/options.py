# SPDX-License-Identifier: Apache-2.0
"""How containers are started on DL1: docker's arguments, variables of HCCL and libfabric. Pure functions.

Sources: the documents of Gaudi about several DL1 instances, and about scaling out by host NICs.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.aws_dl1.host_nic import version_numbers

# As the documents of Gaudi start containers on DL1. --init reaps the orphans of training.
RUNTIME = "habana"
_ALWAYS = ("--cap-add=sys_nice", "--net=host", "--ipc=host", "--init")
_EFA = ("--device=/dev/infiniband", "--ulimit=memlock=-1:-1")
ENVIRONMENT = {"HABANA_VISIBLE_DEVICES": "all", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

# The container's read-only mounts.
LAUNCHER, CODE, START = "/opt/trainyard/launcher", "/opt/trainyard/code", "/opt/trainyard/start"
# The mount that it may write to, on the local disk if the machine has one. It is removed after the start.
SCRATCH, SCRATCH_VARIABLE = "/opt/trainyard/scratch", "TRAINYARD_SCRATCH"
KERNEL_VARIABLE = "TRAINYARD_MACHINE_KERNEL"

# Which implementation moves data between machines. HCCL_OVER_OFI means libfabric over the host's memory, and
# FI_PROVIDER names the hardware. The container may choose a faster way (launcher/aws_dl1/host_nic.py). Inferred from
# the documents: releases before 1.10 have HCCL's own sockets (HCCL_OVER_TCP). Later documents do not name that
# variable; there, libfabric's provider `tcp` uses sockets.
_SOCKETS_OF_HCCL_BEFORE = (1, 10)
_SOCKETS = "sockets"
# The folders of images with the wrapper through which HCCL loads libfabric, and with EFA's libraries.
LIBRARIES = ("/root/hccl_ofi_wrapper", "/opt/amazon/openmpi/lib", "/opt/amazon/efa/lib")

# With at least both versions, libfabric's EFA provider is fork-safe without FI_EFA_FORK_SAFE.
_FORK_SAFE_KERNEL, _FORK_SAFE_RDMA_CORE = (5, 13), (35,)


def host_nic(kind: str, release: str, efa_interfaces: int, interface: str) -> dict[str, str]:
    """Variables for HCCL over the host's network. `interface`: the one that leads to the other machines."""
    by_name = {"HCCL_SOCKET_IFNAME": interface} if interface else {}
    if kind == _SOCKETS:
        if version_numbers(release) < _SOCKETS_OF_HCCL_BEFORE:
            return {"HCCL_OVER_TCP": "1", **by_name}
        return {"HCCL_OVER_OFI": "1", "FI_PROVIDER": "tcp", **by_name}
    return {"HCCL_OVER_OFI": "1", **({"FI_PROVIDER": "efa"} if efa_interfaces else {}), **by_name}


def fork_safety(kernel: str, rdma_core: str) -> dict[str, str]:
    """FI_EFA_FORK_SAFE, unless kernel and rdma-core are new enough. An unknown version counts as old."""
    if version_numbers(kernel) >= _FORK_SAFE_KERNEL and version_numbers(rdma_core) >= _FORK_SAFE_RDMA_CORE:
        return {}
    return {"FI_EFA_FORK_SAFE": "1"}


def library_path(inherited: str, there: Sequence[str]) -> str:
    """LD_LIBRARY_PATH: those of LIBRARIES that the image has, then the image's own folders."""
    own = [folder for folder in LIBRARIES if folder in there]
    return ":".join([*own, *(part for part in inherited.split(":") if part and part not in own)])


def run_words(
    name: str, image: str, program: str, efa_interfaces: int, environment: Mapping[str, str], file: Path,
    volumes: Mapping[str, Path], scratch: Path,
) -> list[str]:  # fmt: skip
    """`docker run` for one container with a Python program. The run's variables are in a file, because all users can
    see the arguments of a process."""
    shown = [f"--volume={place}:{target}:ro" for target, place in volumes.items()]
    shown.append(f"--volume={scratch}:{SCRATCH}")
    return [
        "docker", "run", "--detach", f"--name={name}", f"--runtime={RUNTIME}",
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
