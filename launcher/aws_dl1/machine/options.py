# SPDX-License-Identifier: Apache-2.0
"""How containers are started on DL1: words of docker, variables of HCCL and libfabric. Pure; facts are rows.

Sources: the documents of Gaudi about several DL1 instances, and about scaling out by host NICs.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.aws_dl1.host_nic import numbers

# As the documents of Gaudi start containers on DL1. --init: an orphan of training is nobody's zombie.
RUNTIME = "habana"
_ALWAYS = ("--cap-add=sys_nice", "--net=host", "--ipc=host", "--init")
_EFA = ("--device=/dev/infiniband", "--ulimit=memlock=-1:-1")
ENVIRONMENT = {"HABANA_VISIBLE_DEVICES": "all", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

# What a container sees, read-only.
LAUNCHER, CODE, START = "/opt/trainyard/launcher", "/opt/trainyard/code", "/opt/trainyard/start"
# What it may write, on the local disk where the machine has one. It goes when the start has ended.
SCRATCH, SCRATCH_VARIABLE = "/opt/trainyard/scratch", "TRAINYARD_SCRATCH"
KERNEL_VARIABLE = "TRAINYARD_MACHINE_KERNEL"

# Which implementation moves data between machines. With HCCL_OVER_OFI it is libfabric over the host's memory, until the
# container knows better (launcher/aws_dl1/host_nic.py); the provider says which hardware. Inferred from the documents:
# releases before 1.10 have HCCL's own sockets (HCCL_OVER_TCP); later documents do not name it any more, and libfabric's
# provider `tcp` is what uses sockets there.
_SOCKETS_OF_HCCL_BEFORE = (1, 10)
_SOCKETS = "sockets"
# Where images have the wrapper by which HCCL loads libfabric, and EFA's libraries.
LIBRARIES = ("/root/hccl_ofi_wrapper", "/opt/amazon/openmpi/lib", "/opt/amazon/efa/lib")

# From both on, libfabric's EFA provider is safe for programs that fork without being told.
_FORK_SAFE_KERNEL, _FORK_SAFE_RDMA_CORE = (5, 13), (35,)


def host_nic(kind: str, release: str, efa_interfaces: int, interface: str) -> dict[str, str]:
    """Variables by which HCCL uses the host's network. `interface`: the one that leads to the other machines."""
    by_name = {"HCCL_SOCKET_IFNAME": interface} if interface else {}
    if kind == _SOCKETS:
        if numbers(release) < _SOCKETS_OF_HCCL_BEFORE:
            return {"HCCL_OVER_TCP": "1", **by_name}
        return {"HCCL_OVER_OFI": "1", "FI_PROVIDER": "tcp", **by_name}
    return {"HCCL_OVER_OFI": "1", **({"FI_PROVIDER": "efa"} if efa_interfaces else {}), **by_name}


def fork_safety(kernel: str, rdma_core: str) -> dict[str, str]:
    """FI_EFA_FORK_SAFE, unless kernel and rdma-core are new enough. An unknown version is taken for an old one."""
    if numbers(kernel) >= _FORK_SAFE_KERNEL and numbers(rdma_core) >= _FORK_SAFE_RDMA_CORE:
        return {}
    return {"FI_EFA_FORK_SAFE": "1"}


def library_path(inherited: str, there: Sequence[str]) -> str:
    """LD_LIBRARY_PATH with those of LIBRARIES that an image has, before what the image itself says."""
    own = [folder for folder in LIBRARIES if folder in there]
    return ":".join([*own, *(part for part in inherited.split(":") if part and part not in own)])


def run_words(
    name: str, image: str, program: str, efa_interfaces: int, environment: Mapping[str, str], file: Path,
    volumes: Mapping[str, Path], scratch: Path,
) -> list[str]:  # fmt: skip
    """`docker run` for one container with a Python program. The variables of the run are in a file: all users see the
    words of a process."""
    shown = [f"--volume={place}:{target}:ro" for target, place in volumes.items()]
    shown.append(f"--volume={scratch}:{SCRATCH}")
    return [
        "docker", "run", "--detach", f"--name={name}", f"--runtime={RUNTIME}",
        *(word for item in environment.items() for word in ("-e", "=".join(item))),
        *_ALWAYS, *(_EFA if efa_interfaces else ()), f"--env-file={file}", *shown, "--entrypoint=python3", image,
        "-I", "-c", program,
    ]  # fmt: skip


def program(module: str, arguments: str = "") -> str:
    """A program of the launcher for `python -I -c`: what lies in PYTHONPATH or the working folder, which are the
    image's and the team's, cannot run in its place. Training gets both unchanged."""
    return f"import sys; sys.path.insert(0, {LAUNCHER!r}); from {module} import main; sys.exit(main({arguments}))"


def kernel() -> str:
    """The release of the machine's kernel, which its containers share."""
    return platform.release()
