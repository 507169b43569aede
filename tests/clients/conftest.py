# SPDX-License-Identifier: Apache-2.0
"""Released versions of Oracle's clients, configured for a local cloud as in docs/local-cloud.md."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localcloud.control import Cloud
from tests.support.client_environment import CLIENTS, environment


def client_env(cloud: Cloud, clients: Path, home: Path, profile: str = "deployer") -> dict[str, str]:
    """The variables of `trainyard cloud env`, with an empty home and without the tester's own OCI settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OCI_")}
    path = os.pathsep.join([str(clients), os.environ.get("PATH", os.defpath)])
    return {**kept, **cloud.env_for(profile), "PATH": path, "HOME": str(home), "SUPPRESS_LABEL_WARNING": "True"}


@dataclass(frozen=True)
class Answer:
    code: int
    output: str
    errors: str

    @property
    def data(self) -> Any:
        assert self.code == 0, self.output + self.errors
        return json.loads(self.output)["data"] if self.output.strip() else None

    @property
    def error(self) -> Mapping[str, Any]:
        assert self.code != 0, self.output
        found: Mapping[str, Any] = json.loads(self.errors[self.errors.index("{") :])
        return found


class Oci:
    """The `oci` command: `oci("os", "ns", "get")`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, *arguments: str) -> Answer:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return Answer(**json.loads(self._process.stdout.readline()))


@pytest.fixture(scope="session")
def clients() -> Path:
    """The folder with `oci`, `ads` and the Python that has them."""
    return environment(CLIENTS)


@pytest.fixture(scope="module")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


def _commands(env: Mapping[str, str], clients: Path) -> Iterator[Oci]:
    server = [str(clients / "python"), str(Path(__file__).with_name("oci_commands.py"))]
    with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True) as process:
        try:
            yield Oci(process)
        finally:
            assert process.stdin
            process.stdin.close()


@pytest.fixture(scope="module")
def oci(shared_cloud: Cloud, clients: Path, empty_home: Path) -> Iterator[Oci]:
    """The CLI as the deployer."""
    yield from _commands(client_env(shared_cloud, clients, empty_home), clients)


@pytest.fixture(scope="module")
def oci_as_user(shared_cloud: Cloud, clients: Path, empty_home: Path) -> Iterator[Oci]:
    """The CLI as a user who has no permissions before a policy grants some."""
    yield from _commands(client_env(shared_cloud, clients, empty_home, "user"), clients)
