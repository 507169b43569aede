# SPDX-License-Identifier: Apache-2.0
"""Hostile user data costs little time and memory."""

import time

import pytest

from localcloud.aws.hosts.machine_assignments import boot_plan

_CHAIN = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize("text", [f"{_CHAIN}packages: *a59\n", _CHAIN.replace("[x, x]", "{x: 1}"), "a: &a [*a]"])
def test_yaml_aliases_are_refused(text: str) -> None:
    begun = time.process_time()
    plan = boot_plan(f"#cloud-config\nruncmd: [[true]]\n{text}".encode())
    assert "aliases" in plan["notes"][0]
    assert (plan["runcmd"], time.process_time() - begun < 5) == ([], True)


@pytest.mark.parametrize("text", ["a: [", "a: !!timestamp 2026-99-99", "a: !!int x", "\xff", "a: 1" + "2" * 5000])
def test_invalid_yaml_is_noted(text: str) -> None:
    assert boot_plan(b"#cloud-config\n" + text.encode("latin-1"))["notes"]
