# SPDX-License-Identifier: Apache-2.0
"""Values with which conditions of policy documents are evaluated, and texts that match their patterns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network

from components.aws.iam.decide import UnknownVariableError, fill_policy_variables, literal_text
from components.aws.iam.documents import PolicyStatement
from components.platform.circumstances import OTHER, texts_fitting_pattern

_VARIABLE = re.compile(r"\$\{([^},]*)[^}]*\}")
# Replaces variables such as the caller's own name or tag in resources and values.
OWN = f"{OTHER}own"
_SECOND = timedelta(seconds=1)
_ELSEWHERE = ("198.51.100.7", "2001:db8::7")

Keys = dict[str, tuple[str, ...]]


def own_keys(statements: Iterable[PolicyStatement]) -> Keys:
    """A value for each variable of the caller in the statements."""
    texts = (
        text
        for one in statements
        for row in (one.resources, one.not_resources, *(wanted for _, _, wanted in one.conditions))
        for text in row
    )
    return {name.strip(): (OWN,) for text in texts for name in _VARIABLE.findall(text)}


def matching_text(pattern: str, own: Keys) -> str:
    """A text that matches this pattern and as few others as possible."""
    if pattern == "*":
        return pattern
    return literal_text(_filled_if_known(pattern, own).replace("*", OTHER).replace("?", "x"))


def _filled_if_known(text: str, own: Keys) -> str:
    try:
        return fill_policy_variables(text, own)
    except UnknownVariableError:
        return text


def values_to_test(statements: Iterable[PolicyStatement], own: Keys) -> dict[str, tuple[str | None, ...]]:
    """The values to test for each condition key: those in statements, another value if possible, and none."""
    found: dict[str, set[str]] = defaultdict(set)
    patterns: dict[str, set[str]] = defaultdict(set)
    free: dict[str, bool] = defaultdict(lambda: True)
    names: dict[str, str] = {}
    for operator, key, wanted in (condition for one in statements for condition in one.conditions):
        name = names.setdefault(key.lower(), key)
        texts = [_filled_if_known(text, own) for text in wanted]
        kind = operator.rpartition(":")[2].removesuffix("IfExists").removeprefix("Not")
        if kind.startswith(("Numeric", "Date", "IpAddress", "Bool")):
            free[name] = False
            found[name].update(_boundary_values(kind, texts))
        elif kind != "Null":
            plain = [text for text in texts if "*" not in text and "?" not in text]
            found[name].update(map(literal_text, plain))
            patterns[name].update(literal_text(text.replace("?", "x")) for text in texts if text not in plain)
        else:
            found[name] |= set()
    for name, some in patterns.items():
        for text in sorted(some):
            found[name].update(texts_fitting_pattern(text, sorted(some)))
    return {name: (*sorted(some), *([OTHER] if free[name] else []), None) for name, some in found.items()}


def _boundary_values(kind: str, texts: list[str]) -> Iterator[str]:
    if kind == "Bool":
        yield from ("true", "false")
    for text in texts:
        try:
            if kind.startswith("Numeric"):
                yield from (f"{float(text) + step:g}" for step in (-1, 0, 1))
            elif kind.startswith("Date"):
                moment = datetime.fromisoformat(text)
                yield from ((moment + step * _SECOND).isoformat() for step in (-1, 0, 1))
            elif kind == "IpAddress":
                yield from _boundary_addresses(text)
        except (ValueError, OverflowError):
            yield text


def _boundary_addresses(text: str) -> Iterator[str]:
    """The first and last address of a block, and those just outside of it."""
    block = ip_network(text, strict=False)
    first, last = int(block.network_address), int(block.broadcast_address)
    for number in (first - 1, first, last, last + 1):
        if 0 <= number < 2**block.max_prefixlen:
            yield str(type(block.network_address)(number))
    yield from (one for one in _ELSEWHERE if ip_address(one).version == block.version)
