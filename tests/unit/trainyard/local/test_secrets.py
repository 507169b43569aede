# SPDX-License-Identifier: Apache-2.0
"""How a secret is passed to Pulumi. For the result see tests/flows/test_secrets.py."""

from pathlib import Path

from trainyard.cli.secret import run_set

VALUE = "a value that nobody else may read"


def test_a_secret_is_never_an_argument_of_a_process(tmp_path: Path) -> None:
    """Every account of the machine reads the arguments of every process."""
    pulumi = tmp_path / "pulumi"
    pulumi.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nenv > {tmp_path}/environment\ncat > {tmp_path}/input\n'
    )
    pulumi.chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert run_set(tmp_path / "Pulumi.dev.yaml", "trainyard:jobs.x.env.TOKEN", VALUE, env, tmp_path) == ""
    assert (tmp_path / "input").read_text() == VALUE
    assert "trainyard:jobs.x.env.TOKEN" in (tmp_path / "arguments").read_text()
    assert VALUE not in (tmp_path / "arguments").read_text() + (tmp_path / "environment").read_text()
