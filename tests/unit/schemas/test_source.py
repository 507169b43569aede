# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.scalars import Unclear, resolve_scalar
from schemas.source import MAXIMUM_BYTES, parse_source, read_source


# What the engine's own YAML reader (Go, yaml.v3) makes of plain scalars.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("True", True),
        ("FALSE", False),
        ("~", None),
        ("", None),
        ("007", 7),
        ("08", 8.0),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("-5", -5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("12:30", "12:30"),
        ("1.2.3", "1.2.3"),
        ("8700-8800", "8700-8800"),
        ("-", "-"),
        ("+", "+"),
        ("1e999", "1e999"),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", float(2**63)),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_mean_what_they_mean_to_the_engine(text: str, value: Any) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01T10:00:00Z", ".nan", "-.INF"])
def test_what_nobody_means_is_unclear(text: str) -> None:
    assert isinstance(resolve_scalar(text), Unclear)


def test_values_are_read_with_their_positions() -> None:
    source = parse_source('a:\n  b: [1, "2"]\n  "c": yes\nd: !!str 7\n')
    assert source.data == {"a": {"b": [1, "2"], "c": "yes"}, "d": "7"}
    assert not source.findings
    assert source.position(("a", "b")) == (2, 3)
    assert source.position(("a", "b", 1)) == (2, 10)
    assert source.position(("a", "c")) == (3, 3)
    assert source.position(("a", "nothing", 3)) == (1, 1)
    assert source.position(("nothing",)) == (1, 1)


def test_anchors_aliases_and_merges() -> None:
    source = parse_source("base: &b { x: 1, y: 2 }\none: *b\ntwo:\n  <<: *b\n  y: 3\nthree: { <<: [*b, { z: 4 }] }\n")
    assert source.data["one"] == {"x": 1, "y": 2}
    assert source.data["two"] == {"x": 1, "y": 3}
    assert source.data["three"] == {"x": 1, "y": 2, "z": 4}
    assert not source.findings
    quoted = parse_source("base: &b { x: 1 }\ntwo: { '<<': *b }\nthree: !!map { four: !!seq [] }\n")
    assert quoted.data["two"] == {"<<": {"x": 1}}
    assert not quoted.findings


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: 1\na: 2\n", "TY004", 2),
        ("a: {b: 1, b: 2}\n", "TY004", 1),
        ("a:\n\tb: 1\n", "TY003", 2),
        ("a: [1\nb: 2\n", "TY003", 2),
        ("a: *nowhere\n", "TY003", 1),
        ("a: &a [*a]\n", "TY003", 1),
        ("&a b: 1\n*a : 2\n", "TY003", 2),
        ("a: !!python/object/apply:os.system [id]\n", "TY003", 1),
        ("a: !mine { b: 1 }\n", "TY003", 1),
        ("? [a]\n: 1\n", "TY003", 1),
        ("a: !secret x\n", "TY003", 1),
        ("a: 1\n---\nb: 2\n", "TY006", 2),
        ("a: 2026-01-01\n", "TY007", 1),
        ("1.5: a\n", "TY007", 1),
        ("a: \x00\n", "TY003", 1),
        ("a: ü\nb: 1\nc: \x01\n", "TY003", 3),
        ("%YAML 9.9\n---\na: 1\n", "TY003", 1),
    ],
)
def test_what_is_wrong_with_the_text_is_a_finding_with_its_line(text: str, code: str, line: int) -> None:
    assert [(finding.code, finding.line) for finding in parse_source(text).findings] == [(code, line)]


def test_aliases_and_depth_are_bounded_before_anything_grows() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 60)]
    assert [finding.code for finding in parse_source("\n".join(rows)).findings] == ["TY005"]
    assert [finding.code for finding in parse_source("[" * 100_000).findings] == ["TY005"]
    assert [finding.code for finding in parse_source("a: " * 1).findings] == []


def test_files_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (MAXIMUM_BYTES + 1))
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"a: 1\nb: \xff\n")
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    for file, code, line in [
        (large, "TY005", 0),
        (odd, "TY002", 2),
        (tmp_path, "TY001", 0),
        (tmp_path / "none", "TY001", 0),
        (loop, "TY001", 0),
        (tmp_path / "nul\0.yaml", "TY001", 0),
    ]:
        assert [(finding.code, finding.line) for finding in read_source(file).findings] == [(code, line)]


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "bom.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_source(file).data == {"a": 1, "b": 2}


@given(st.text())
def test_no_text_makes_reading_raise(text: str) -> None:
    parse_source(text)


@given(st.text(alphabet="a:-[]{}&*!|>'\"%@`,?#~<\t\n 0.e_", max_size=60))
def test_no_text_of_yaml_s_own_letters_makes_reading_raise(text: str) -> None:
    parse_source(text)
