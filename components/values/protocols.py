# SPDX-License-Identifier: Apache-2.0
"""IP protocols, by their numbers and names. None stands for every protocol."""

from __future__ import annotations

TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
WITH_PORTS = (TCP, UDP)
EVERY_PROTOCOL = "all"
_TITLES = {ICMP: "ICMP", TCP: "TCP", UDP: "UDP", ICMPV6: "ICMPv6"}
_NUMBERS = {title.lower(): number for number, title in _TITLES.items()}
PROTOCOL_NAMES = tuple(_NUMBERS)
# In the APIs of clouds, every protocol is a word or a number.
EVERY_PROTOCOL_NAMES = (EVERY_PROTOCOL, "-1")
_LAST_NUMBER = 255


def parse_protocol(text: str) -> int | None:
    """The number of a protocol, from its number or name. Raises ValueError for any other text."""
    name = text.lower()
    if name in EVERY_PROTOCOL_NAMES:
        return None
    if name in _NUMBERS:
        return _NUMBERS[name]
    if not (name.isascii() and name.isdecimal() and len(name) <= 3 and int(name) <= _LAST_NUMBER):
        raise ValueError(f"{text!a} is not an IP protocol")
    return int(name)


def protocol_title(protocol: str | int | None) -> str:
    """`TCP`, `all`, or the number of a protocol without a common name. A text that is not a protocol stays."""
    try:
        number = parse_protocol(protocol) if isinstance(protocol, str) else protocol
    except ValueError:
        return str(protocol)
    return EVERY_PROTOCOL if number is None else _TITLES.get(number, str(number))


def protocol_name(protocol: str | int | None) -> str:
    """`tcp`, `all`, or the number of a protocol without a common name. A text that is not a protocol stays."""
    title = protocol_title(protocol)
    return title.lower() if title in _TITLES.values() else title
