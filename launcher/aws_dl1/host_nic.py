# SPDX-License-Identifier: Apache-2.0
"""What only Gaudi needs: how HCCL moves data between machines, by the kernel and the libfabric of the image.

Source: the documents of Gaudi about scaling out by host NICs. HCCL itself takes the best way it finds, unless
HCCL_OVER_OFI is set: that means libfabric over the host's memory. The container decides and not the machine, because
its launcher comes with the ticket. So this module also applies to machines that an earlier release made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.aws_dl1 import fabric as fabrics
from launcher.aws_dl1.accelerators import Accelerator
from launcher.aws_dl1.fabric import Fabric, version_numbers

# The stack file's `hostNic`, if it has changed since the machine was made.
VARIABLE, HOST_MEMORY = "TRAINYARD_HOST_NIC", "host-memory"
# Which of CHOSEN the stack file's `environment` sets. Machines of earlier releases do not set this variable.
OWN_VARIABLE = "TRAINYARD_HOST_NIC_OWN"
CHOSEN = ("HCCL_OVER_OFI", "HCCL_OVER_TCP", "FI_PROVIDER")
_SOCKETS, _EFA = "tcp", "efa"
# The accelerators of a machine whose node.json names none: those that all releases before it knew. A test holds this
# to the row of catalog/aws_accelerators.toml.
BEFORE_NODE_JSON_NAMED_THEM = Accelerator(
    words="Gaudi",
    count=8,
    runtime="habana",
    environment={"HABANA_VISIBLE_DEVICES": "all", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
    shows=("hl-smi", "-Q", "index", "-f", "csv,noheader"),
    host_nic=True,
)
# The folder of images with the wrapper through which HCCL loads libfabric.
WRAPPER = "/root/hccl_ofi_wrapper"
# Inferred from the documents: releases before 1.10 have HCCL's own sockets (HCCL_OVER_TCP). Later documents do not name
# that variable; there, libfabric's provider `tcp` uses sockets.
_SOCKETS_OF_HCCL_BEFORE = (1, 10)
# The lowest versions with Gaudi Direct: the interface reads and writes the memory of the accelerators.
_KERNEL, _LIBFABRIC = (5, 12), (1, 16, 1)
_DIRECT = {"RDMAV_FORK_SAFE": "1", "FI_EFA_USE_DEVICE_RDMA": "1"}
# In the order in which HCCL finds the libfabric that it loads.
FOLDERS = (fabrics.FOLDERS[0], "/opt/habanalabs/libfabric/bin", *fabrics.FOLDERS[1:])


@dataclass(frozen=True)
class Transport:
    """Variables to set (None: to unset), and the choice in words for people."""

    variables: Mapping[str, str | None]
    words: str


def transport_variables(kind: str, release: str, efa_interfaces: int, interface: str) -> dict[str, str]:
    """Variables for HCCL over the host's network. HCCL_OVER_OFI means libfabric over the host's memory, and FI_PROVIDER
    names the hardware. `interface`: the one that leads to the other machines."""
    by_name = {"HCCL_SOCKET_IFNAME": interface} if interface else {}
    if kind == "sockets":
        if version_numbers(release) < _SOCKETS_OF_HCCL_BEFORE:
            return {"HCCL_OVER_TCP": "1", **by_name}
        return {"HCCL_OVER_OFI": "1", "FI_PROVIDER": _SOCKETS, **by_name}
    return {"HCCL_OVER_OFI": "1", **({"FI_PROVIDER": _EFA} if efa_interfaces else {}), **by_name}


def chooses_efa(environment: Mapping[str, str]) -> bool:
    """Whether neither the stack file, nor the machine because of it, has chosen another transport."""
    return environment.get("FI_PROVIDER", _EFA) == _EFA and "HCCL_OVER_TCP" not in environment


def apply_transport(environment: dict[str, str], fabric: Fabric) -> str:
    """Sets what this container's HCCL needs, and returns the choice in words."""
    transport = choose_transport(environment, fabric)
    for name, chosen in transport.variables.items():
        if chosen is None:
            environment.pop(name, None)
        elif name in CHOSEN or name not in environment:
            environment[name] = chosen
    return transport.words


def choose_transport(environment: Mapping[str, str], fabric: Fabric) -> Transport:
    """Chooses from the variables that the machine set, which follow the stack file's `hostNic`."""
    own = [name for name in environment.get(OWN_VARIABLE, "").split(",") if name]
    if own:
        return Transport({}, f"as the stack file's environment says ({', '.join(own)})")
    if "HCCL_OVER_TCP" in environment or environment.get("FI_PROVIDER") == _SOCKETS:
        # HCCL's sockets use the one interface that is named, and no other.
        return Transport({}, f"TCP sockets, over {environment.get('HCCL_SOCKET_IFNAME') or 'one interface'} only")
    if environment.get("HCCL_OVER_OFI") != "1" or environment.get("FI_PROVIDER") != _EFA:
        return Transport({}, "as the environment says")
    if environment.get(VARIABLE) == HOST_MEMORY:
        return Transport({}, "libfabric over the host's memory, as the stack file says")
    if fabric.lacks_efa:
        return Transport(
            {"FI_PROVIDER": _SOCKETS}, f"TCP sockets: libfabric {fabric.libfabric} of the image finds no EFA"
        )
    missing = _why_not_gaudi_direct(fabric)
    if missing:
        return Transport({}, f"libfabric over the host's memory: {missing}")
    words = f"Gaudi Direct over EFA (kernel {fabric.kernel}, libfabric {fabric.libfabric})"
    return Transport({"HCCL_OVER_OFI": None, **_DIRECT}, words)


def _why_not_gaudi_direct(fabric: Fabric) -> str:
    """Why Gaudi Direct is not possible; empty if it is."""
    if not fabric.libfabric:
        return "the image has no fi_info, so it is unknown whether its libfabric has Gaudi Direct"
    lacks = [
        f"{name} {version}, and {'.'.join(map(str, needed))} is needed"
        for name, version, needed in (("kernel", fabric.kernel, _KERNEL), ("libfabric", fabric.libfabric, _LIBFABRIC))
        if version_numbers(version) < needed
    ]
    return f"Gaudi Direct is not possible ({'; '.join(lacks)})" if lacks else ""
