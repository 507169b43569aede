# SPDX-License-Identifier: Apache-2.0
"""No name in a bucket becomes a path that leaves its folder."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.platform.streams import LONGEST_NAME, WORKPLACE, local_path, object_name


@given(st.text(st.sampled_from("a./\\\0\x1b ~:é‮"), max_size=12))
def test_a_path_is_made_of_ordinary_steps_or_refused(name: str) -> None:
    steps, why = local_path(name)
    assert bool(steps) != bool(why)
    for step in steps:
        assert step not in ("", ".", "..")
        assert not set(step) & set("/\\\0\x1b‮")
    if steps:
        assert os.path.normpath(f"/root/{name}") == os.path.join("/root", *steps)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../x", "a//b", "a/", WORKPLACE, f"{WORKPLACE}/x", "n" * 256]
)
def test_what_no_file_can_be_called(name: str) -> None:
    assert local_path(name)[1]


def test_what_is_put_can_be_fetched_again() -> None:
    assert object_name("data", "a/b c é.bin") == ("data/a/b c é.bin", "")
    assert object_name("", "a") == ("a", "")
    assert "UTF-8" in object_name("data", "\udcff")[1]
    assert str(LONGEST_NAME) in object_name("data", "é/" * (LONGEST_NAME // 2))[1]
    assert object_name("data", "a\nb")[1]
