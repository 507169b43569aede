# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from components.platform.values import (
    UNKNOWN,
    Secret,
    has_unknown,
    redact_secrets,
    reveal_secrets,
    seal_secrets,
    secret_texts,
)
from provider.base.wire import decode_struct, encode_struct

_LEAVES = st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8) | st.just(UNKNOWN)
_PLAIN = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
_PROPERTIES = st.dictionaries(st.text(min_size=1, max_size=5), _PLAIN | _PLAIN.map(Secret), max_size=4)


@given(_PROPERTIES)
def test_properties_survive_encoding_and_decoding(properties: dict[str, Any]) -> None:
    assert decode_struct(encode_struct(properties)) == properties


@given(_PROPERTIES)
def test_sealing_changes_no_value(properties: dict[str, Any]) -> None:
    assert reveal_secrets(seal_secrets(reveal_secrets(properties), properties)) == reveal_secrets(properties)


@given(_PROPERTIES)
def test_what_was_secret_stays_secret(properties: dict[str, Any]) -> None:
    sealed = seal_secrets(reveal_secrets(properties), properties)
    assert all(isinstance(sealed[key], Secret) for key, value in properties.items() if isinstance(value, Secret))


@pytest.mark.parametrize(
    ("outputs", "inputs", "hidden"),
    [
        ({"a": {"b": "x"}}, {"a": {"b": Secret("x")}}, {"a": {"b": Secret("x")}}),
        ({"a": ["1", "2"]}, {"a": ["1", Secret("2")]}, {"a": ["1", Secret("2")]}),
        ({"a": ["2"]}, {"a": ["1", Secret("2")]}, {"a": Secret(["2"])}),
        ({"other": "key=hush-hush"}, {"a": Secret("hush-hush")}, {"other": Secret("key=hush-hush")}),
        ({"a": 1}, {"a": Secret(1)}, {"a": Secret(1)}),
    ],
)
def test_a_secret_is_found_wherever_it_turns_up(outputs: Any, inputs: Any, hidden: Any) -> None:
    assert seal_secrets(outputs, inputs) == hidden


def test_an_output_value_is_its_value_or_unknown() -> None:
    signature = {"4dabf18193072939515e22adb298388d": "d0e6a833031e9bbcd3f4e8bde6ca49a4"}
    struct = struct_pb2.Struct()
    struct.update(
        {"known": {**signature, "value": 1}, "secret": {**signature, "value": "x", "secret": True}, "un": signature}
    )
    assert decode_struct(struct) == {"known": 1, "secret": Secret("x"), "un": UNKNOWN}


def test_a_resource_is_its_id() -> None:
    signature = {"4dabf18193072939515e22adb298388d": "5cf8f73096256a8f31e491e813e4eb8e"}
    struct = struct_pb2.Struct()
    struct.update({"a": {**signature, "urn": "urn:x", "id": "1"}, "b": {**signature, "urn": "urn:x"}})
    assert decode_struct(struct) == {"a": "1", "b": "urn:x"}


def test_texts_of_secrets_are_cut_out_of_messages() -> None:
    texts = secret_texts({"a": Secret({"b": ["hush-hush"]}), "c": "open"})
    assert redact_secrets("no hush-hush in open", texts) == "no [secret] in open"


def test_secrets_do_not_print() -> None:
    assert "hush" not in repr({"a": Secret("hush")})


def test_unknowns_are_found_at_any_depth() -> None:
    assert has_unknown({"a": [{"b": Secret(UNKNOWN)}]})
    assert not has_unknown({"a": [1, None, {"b": "x"}]})
