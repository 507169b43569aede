# SPDX-License-Identifier: Apache-2.0
"""Checksums of whole objects and of parts, and which parts a checksum may be of."""

import base64
import hashlib
from pathlib import Path

import pytest

from components.platform import streams
from components.platform.streams import MEBIBYTE


def test_a_checksum_of_parts_is_the_digest_of_their_digests() -> None:
    digests = [hashlib.md5(part).digest() for part in (b"one", b"two")]
    whole = hashlib.md5(b"".join(digests)).digest()
    assert streams.checksum_of_parts(digests) == f"{base64.b64encode(whole).decode()}-2"


@pytest.mark.parametrize("size", [0, 1, 1 << 20, 10 << 40])
def test_any_file_fits_into_the_parts_that_a_store_takes(size: int) -> None:
    part = streams.part_bytes(size)
    parts = range(0, size, part)
    assert len(parts) <= streams.MOST_PARTS


def test_parts_are_guessed_from_their_count() -> None:
    size = 300 * MEBIBYTE
    assert streams.possible_parts(size, "whole==") == []
    assert streams.possible_parts(size, "x==-3")[0] == 128 * MEBIBYTE
    assert 16 * MEBIBYTE in streams.possible_parts(size, "x==-19")
    assert 43 * MEBIBYTE in streams.possible_parts(size, "x==-7")
    assert streams.possible_parts(size, "x==-3", stated=110 * MEBIBYTE)[0] == 110 * MEBIBYTE
    assert 1 not in streams.possible_parts(size, "x==-3", stated=1)


def test_a_file_that_is_shorter_than_it_was_has_another_digest(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    with (tmp_path / "file").open("rb") as file:
        whole = streams.checksum_text(hashlib.md5(b"abc").digest())
        assert streams.matches_checksum(file.fileno(), 3, whole)
        assert not streams.matches_checksum(file.fileno(), 2, whole)
        assert streams.digest_of(file.fileno(), 1, 99) == hashlib.md5(b"bc").digest()
