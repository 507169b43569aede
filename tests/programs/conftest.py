# SPDX-License-Identifier: Apache-2.0
"""The recorder for these tests. It is started once, and records one stack after the other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.examples import STACKS, stack_file
from tests.support.recorder.client import Client, Recording

Record = Callable[..., Recording]
Written = Callable[..., Recording]


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture(scope="session")
def record(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """`record(name, **how)`: the recording of an example. It is made once for each set of arguments."""
    known: dict[str, Recording] = {}
    root = tmp_path_factory.mktemp("records")

    def recording(name: str, **how: Any) -> Recording:
        asked = json.dumps([name, how], sort_keys=True)
        if asked not in known:
            known[asked] = client.record(stack_file(name), root, **how)
        return known[asked]

    return recording


@pytest.fixture
def changed(client: Client, tmp_path: Path) -> Written:
    """`changed("oci-pytorch-ddp", change, **how)`: the recording of an example whose configuration `change` edited."""

    def recording(name: str, change: Callable[[dict[str, Any]], None], **how: Any) -> Recording:
        document = yaml.safe_load(stack_file(name).read_text("utf-8"))
        change(document["config"])
        # In the same folder as the code folders that the example names.
        shutil.copytree(STACKS / "examples", tmp_path / "examples", dirs_exist_ok=True)
        (tmp_path / "Pulumi.yaml").touch()
        file = tmp_path / f"Pulumi.{name}.yaml"
        file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
        return client.record(file, tmp_path, **how)

    return recording
