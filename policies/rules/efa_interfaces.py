# SPDX-License-Identifier: Apache-2.0
"""EFA interfaces that share a network card share its bandwidth, or AWS refuses to start the machine."""

from collections.abc import Mapping, Sequence
from typing import Any

from policies.rule import PASS, JudgedResource, PolicyRule, PolicyVerdict, Unknown, fail_because

TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
EFA = ("efa", "efa-only")


def judge_efa_interfaces(resource: JudgedResource) -> PolicyVerdict:
    interfaces: Sequence[Mapping[str, Any]] = resource.properties.get("networkInterfaces") or ()
    efa = [interface for interface in interfaces if interface.get("interfaceType") in EFA]
    if not efa:
        return PASS
    cards = [int(interface.get("networkCardIndex") or 0) for interface in efa]
    if len(set(cards)) < len(cards):
        return fail_because("two EFA interfaces share a network card")
    for interface, card in zip(efa, cards, strict=True):
        device, has_address = int(interface.get("deviceIndex") or 0), interface["interfaceType"] == "efa"
        if has_address and device != min(card, 1):
            return fail_because("an EFA interface has the wrong deviceIndex: 0 on network card 0, 1 on the others")
        if not has_address and (card, device) == (0, 0):
            return fail_because("an `efa-only` interface cannot be the primary one, which has the machine's address")
    if not all(_has_groups(interface) for interface in efa):
        return fail_because(
            "an EFA interface names no security group, and the VPC's own group need not let EFA through"
        )
    return PASS


def _has_groups(interface: Mapping[str, Any]) -> bool:
    """Whether it names groups, also those that are made later."""
    groups = interface.get("securityGroups")
    return isinstance(groups, Unknown) or bool(groups)


def _template_with_interfaces(*interfaces: Mapping[str, Any]) -> JudgedResource:
    return JudgedResource(TEMPLATE, {"networkInterfaces": list(interfaces)})


def _efa_only(card: int, device: int) -> dict[str, Any]:
    return _efa_interface(card, device, interfaceType="efa-only")


def _efa_interface(card: Any, device: Any, **more: Any) -> dict[str, Any]:
    own = {"interfaceType": "efa", "networkCardIndex": card, "deviceIndex": device, "securityGroups": ["sg-0a1b2c3d"]}
    return {**own, **more}


RULE = PolicyRule(
    id="efa-interfaces",
    level="mandatory",
    asks="Each EFA interface has a network card of its own, and a security group.",
    remedy="set another networkCardIndex for each, deviceIndex 0 for the primary one, 1 beside it, and securityGroups",
    types=(TEMPLATE,),
    judge=judge_efa_interfaces,
    passes={
        "four": _template_with_interfaces(*(_efa_interface(card, min(card, 1)) for card in range(4))),
        "beside an ordinary one": _template_with_interfaces(
            {"networkCardIndex": 0, "deviceIndex": 0}, _efa_only(0, 1), _efa_only(1, 0)
        ),
        "one": _template_with_interfaces(_efa_interface(0, 0)),
        "none": JudgedResource(TEMPLATE, {"imageId": "ami-0a1b2c3d"}),
        "a group that is made later": _template_with_interfaces(
            _efa_interface(0, 0, securityGroups=Unknown("securityGroups"))
        ),
    },
    fails={
        "two on one card": _template_with_interfaces(_efa_interface(0, 0), _efa_interface(0, 1)),
        "the same device twice": _template_with_interfaces(_efa_interface(0, 0), _efa_interface(1, 0)),
        "a primary one without an address": _template_with_interfaces(_efa_only(0, 0)),
        "no group": _template_with_interfaces(_efa_interface(0, 0, securityGroups=[])),
    },
    unknown={
        "a card decided elsewhere": _template_with_interfaces(
            _efa_interface(Unknown("networkInterfaces[0].networkCardIndex"), 0)
        )
    },
)
