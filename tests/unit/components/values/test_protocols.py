# SPDX-License-Identifier: Apache-2.0
"""Numbers and names of IP protocols."""

from __future__ import annotations

import pytest

from components.values.protocols import (
    EVERY_PROTOCOL_NAMES,
    PROTOCOL_NAMES,
    parse_protocol,
    protocol_name,
    protocol_title,
)


def test_a_number_and_a_name_mean_the_same_protocol() -> None:
    for name in PROTOCOL_NAMES:
        number = parse_protocol(name)
        assert parse_protocol(str(number)) == parse_protocol(name.upper()) == number
        assert protocol_name(number) == protocol_name(str(number)) == name
        assert protocol_title(number).lower() == name


def test_every_protocol_has_no_number() -> None:
    for name in EVERY_PROTOCOL_NAMES:
        assert parse_protocol(name) is None
        assert protocol_name(name) == protocol_title(None) == "all"


@pytest.mark.parametrize("text", ["", "256", "-2", "tcpp", "6 ", "٦", "00000000000000000006"])
def test_other_texts_are_not_protocols_and_stay(text: str) -> None:
    with pytest.raises(ValueError, match="is not an IP protocol"):
        parse_protocol(text)
    assert protocol_name(text) == protocol_title(text) == text


def test_a_protocol_without_a_common_name_keeps_its_number() -> None:
    assert (parse_protocol("47"), protocol_name("47"), protocol_title(47)) == (47, "47", "47")
