# SPDX-License-Identifier: Apache-2.0
"""Checks the network interfaces of a launch against its instance type: cards, EFA, and public addresses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from localcloud.aws.additions.outside import ec2_error

# moto stores interfaces by device index, without the card. So each card's indices begin this much higher.
CARD_STEP = 64
_KINDS = ("interface", "efa", "efa-only")


def check_interfaces(kind: str, wanted: dict[str, Any]) -> None:
    """Raises AWS's refusals of the interfaces that a launch asks for."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    interfaces = wanted.get("NetworkInterfaces", [])
    if not interfaces:
        return
    if wanted.get("SubnetId") or wanted.get("SecurityGroupIds"):
        raise ec2_error(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same"
            " request",
        )
    network = INSTANCE_TYPES[kind]["NetworkInfo"]
    _check_places(kind, network, interfaces)
    _check_kinds(kind, network, interfaces)
    if len(interfaces) > 1 and any(one.get("AssociatePublicIpAddress") for one in interfaces):
        raise ec2_error(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network"
            " interfaces.",
        )


def _check_places(kind: str, network: dict[str, Any], interfaces: list[dict[str, Any]]) -> None:
    cards = network.get("MaximumNetworkCards", 1)
    places = Counter((int(one.get("NetworkCardIndex") or 0), int(one.get("DeviceIndex") or 0)) for one in interfaces)
    if len(interfaces) > network["MaximumNetworkInterfaces"]:
        raise ec2_error(
            "AttachmentLimitExceeded",
            f"Interface count {len(interfaces)} exceeds the limit for {kind}: {network['MaximumNetworkInterfaces']}",
        )
    for card, device in places:
        if not 0 <= card < cards:
            raise ec2_error(
                "InvalidParameterValue",
                f"The network card index {card} is not valid for {kind}: it has {cards} network cards",
            )
        most = network["NetworkCards"][card]["MaximumNetworkInterfaces"] if "NetworkCards" in network else 0
        if device >= most > 0:
            raise ec2_error(
                "InvalidParameterValue",
                f"The specified number '{device}' for the device index exceeds the maximum number of network"
                f" interfaces supported by the network card at network card index {card}. The maximum devices for this"
                f" network card is {most}. Specify a number from 0 to {most - 1}, and try again.",
            )
        if places[card, device] > 1:
            raise ec2_error(
                "InvalidParameterValue",
                f"The device index {device} on network card {card} is used by more than one network interface",
            )
    if (0, 0) not in places:
        raise ec2_error("InvalidParameterCombination", "A primary network interface with device index 0 on network"
                        " card 0 is required")  # fmt: skip


def _check_kinds(kind: str, network: dict[str, Any], interfaces: list[dict[str, Any]]) -> None:
    fast = Counter[int]()
    for interface in interfaces:
        sort = interface.get("InterfaceType") or "interface"
        if sort not in _KINDS:
            raise ec2_error("InvalidParameterValue", f"Invalid value '{sort}' for InterfaceType.")
        if sort != "interface":
            fast[int(interface.get("NetworkCardIndex") or 0)] += 1
        if sort == "efa-only" and not int(interface.get("DeviceIndex") or 0):
            raise ec2_error("InvalidParameterValue", "An EFA-only interface cannot be the primary network interface")
    if fast and not network.get("EfaSupported"):
        raise ec2_error("InvalidParameterCombination", f"The instance type {kind} does not support EFA interfaces")
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    if fast.total() > most:
        raise ec2_error("AttachmentLimitExceeded", f"EFA interface count {fast.total()} exceeds the limit for {kind}:"
                        f" {most}")  # fmt: skip
    if crowded := [card for card, count in fast.items() if count > 1]:
        raise ec2_error("InvalidParameterValue", f"Only one EFA interface is allowed on network card {crowded[0]}")
