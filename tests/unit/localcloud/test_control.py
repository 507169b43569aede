# SPDX-License-Identifier: Apache-2.0
"""The principal of a command in a local cloud. Each kind of client has its own variable for it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from localcloud.control import Cloud

OCI, AWS = "OCI_CONFIG_PROFILE", "AWS_PROFILE"
ROWS = [
    ({}, ("deployer", "deployer")),
    ({OCI: "user"}, ("user", "deployer")),
    ({AWS: "user"}, ("deployer", "user")),
    ({OCI: "user", AWS: "deployer"}, ("user", "deployer")),
]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    for name in (OCI, AWS, "OCI_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name, raising=False)
    return Cloud(tmp_path, 1, "http://127.0.0.1:1", "tenancy", "compartment", "space", "region")


def _set(variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("profiles", "callers"), ROWS)
def test_a_profile_beside_this_clouds_credentials_names_the_caller(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, profiles: Mapping[str, str], callers: tuple[str, str]
) -> None:
    exported = {name: value for name, value in cloud.env.items() if name not in (OCI, AWS)}
    _set({**exported, **profiles}, monkeypatch)
    env = cloud.env_of_caller()
    assert (env[OCI], env[AWS]) == callers


def test_a_profile_of_other_credentials_is_ignored(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    _set({OCI: "user", AWS: "user"}, monkeypatch)
    env = cloud.env_of_caller()
    assert (env[OCI], env[AWS]) == ("deployer", "deployer")
