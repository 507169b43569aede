# SPDX-License-Identifier: Apache-2.0
"""Refuses protocols, ports, blocks of addresses and texts in rules of EC2's networks.

moto stores any value, and the hosts' firewalls could not read it. Where no client is known to match on a message, its
text is inferred.
"""

from __future__ import annotations

import re
from ipaddress import ip_network

from components.values.protocols import EVERY_PROTOCOL_NAMES, ICMP, ICMPV6, PROTOCOL_NAMES, WITH_PORTS, parse_protocol
from localcloud.aws.aws_errors import aws_refusal
from localcloud.aws.calls import AwsCall

_MOST_PORTS = 65_535
_BLOCKS = frozenset({
    "CidrIp", "CidrIpv4", "CidrIpv6", "Cidr", "CidrBlock", "Ipv6CidrBlock", "DestinationCidrBlock",
    "DestinationIpv6CidrBlock",
})  # fmt: skip
# Python takes a netmask in place of the length, and zeros in front of it.
_BLOCK = re.compile(r"[0-9a-fA-F:.]+/(0|[1-9][0-9]{0,2})", re.ASCII)
_TEXT = re.compile(r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]{0,255}", re.ASCII)


def refuse_network_values(call: AwsCall) -> None:
    """Refuses values that EC2 refuses, wherever a call has them. What is revoked may be of an older state."""
    rules = "SecurityGroup" in call.operation
    if call.operation.startswith(("Revoke", "Delete")):
        return
    for name, value in call.parameters.items():
        parent, _, member = name.rpartition(".")
        if member in _BLOCKS and not _is_block(value):
            raise aws_refusal("address block", value=value)
        if member in ("FromPort", "ToPort") and rules and not -1 <= int(value) <= _MOST_PORTS:
            raise aws_refusal("port", value=value, least=-1, most=_MOST_PORTS)
        if member == "IpProtocol" and rules:
            _check_protocol(call, parent, value)
        if member in ("Description", "GroupDescription") and rules and not _TEXT.fullmatch(value):
            raise aws_refusal("description", words="security group" if member == "GroupDescription" else "rule")
    if call.operation in ("CreateNetworkAclEntry", "ReplaceNetworkAclEntry"):
        _check_number(call.text("Protocol"), "protocol")
    if call.operation == "CreateSubnet":
        _check_zone(call)


def _check_protocol(call: AwsCall, parent: str, protocol: str) -> None:
    """Refuses an unknown protocol, and ports or types of ICMP outside of their range."""
    if protocol not in (*PROTOCOL_NAMES, *EVERY_PROTOCOL_NAMES):
        _check_number(protocol, "IP protocol")
    number = parse_protocol(protocol)
    prefix = f"{parent}." if parent else ""
    first, last = (call.text(f"{prefix}{name}") for name in ("FromPort", "ToPort"))
    least, most = (0, _MOST_PORTS) if number in WITH_PORTS else (-1, 255)
    if number in (*WITH_PORTS, ICMP, ICMPV6):
        for value in filter(None, (first, last)):
            if not least <= int(value) <= most:
                raise aws_refusal("port", value=value, least=least, most=most)
    if number in WITH_PORTS:
        if bool(first) != bool(last):
            raise aws_refusal("ports incomplete", value=first or last)
        if first and int(first) > int(last):
            raise aws_refusal("ports reversed", first=first, last=last)


def _check_zone(call: AwsCall) -> None:
    """Refuses a zone of another region."""
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

    zones = RegionsAndZonesBackend.zones[call.region]
    for parameter, names in {"AvailabilityZone": [zone.name for zone in zones],
                             "AvailabilityZoneId": [zone.zone_id for zone in zones]}.items():  # fmt: skip
        if (value := call.text(parameter)) and value not in names:
            raise aws_refusal(
                "zone", value=value, parameter=f"{parameter[0].lower()}{parameter[1:]}", zones=", ".join(names)
            )


def _check_number(protocol: str, what: str) -> None:
    if not (protocol == "-1" or (re.fullmatch(r"[0-9]{1,3}", protocol, re.ASCII) and int(protocol) <= 255)):
        raise aws_refusal("protocol", value=protocol, words=what)


def _is_block(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return _BLOCK.fullmatch(text) is not None
