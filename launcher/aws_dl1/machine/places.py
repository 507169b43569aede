# SPDX-License-Identifier: Apache-2.0
"""Where things are on a machine, and files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT_VARIABLE = "TRAINYARD_MACHINE_ROOT"


@dataclass(frozen=True)
class Places:
    """All below one root: `/` but in tests."""

    root: Path

    @property
    def settings(self) -> Path:
        return self.root / "etc/trainyard/node.json"

    @property
    def launchers(self) -> Path:
        return self.root / "opt/trainyard/launchers"

    @property
    def codes(self) -> Path:
        return self.root / "var/lib/trainyard/code"

    @property
    def starts(self) -> Path:
        return self.root / "var/lib/trainyard/starts"

    @property
    def scratch(self) -> Path:
        """The local disk, where the machine has one."""
        return self.root / "var/lib/trainyard/scratch"

    @property
    def run(self) -> Path:
        """Emptied by each boot."""
        return self.root / "run/trainyard-node"

    @property
    def home(self) -> Path:
        return self.root / "root"

    @property
    def rdma_devices(self) -> Path:
        return self.root / "dev/infiniband"

    def boot(self) -> str:
        """The name of this boot: a file that no boot leaves to the next."""
        file = self.run / "boot"
        try:
            return file.read_text("ascii")
        except FileNotFoundError:
            write(file, uuid.uuid4().hex.encode())
            return file.read_text("ascii")


def places(environment: Mapping[str, str]) -> Places:
    """Of this machine."""
    return Places(Path(environment.get(ROOT_VARIABLE) or "/"))


def write(file: Path, content: bytes, mode: int = 0o600) -> None:
    """Beside its place and then moved there; it survives a power cut."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(number, "wb") as opened:
        os.fchmod(number, mode)
        opened.write(content)
        opened.flush()
        os.fsync(number)
    draft.replace(file)


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    write(file, json.dumps(content).encode())


def read_json(file: Path) -> dict[str, Any] | None:
    """None where there is no such file, or no whole one."""
    try:
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
