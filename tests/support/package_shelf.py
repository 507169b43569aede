# SPDX-License-Identifier: Apache-2.0
"""A folder of packages for the real pip, and the environment of a framework over which they are installed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from localcloud.environments import cache, find, layers, make
from localcloud.environments.find import Environment, MissingEnvironment
from localcloud.environments.layers import LayerRequirements, make_layer
from tests.support.environments import TINY, Told
from tests.support.wheels import write_wheel

MINI = replace(TINY, imports=("json",), offers=frozenset({"mini"}))
PYTHON = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


class Shelf:
    """A folder of packages, and the environment of a framework `mini` 1.0 that needs the package `helper`."""

    def __init__(self, root: Path, base: Environment) -> None:
        self.folder = root / "wheels"
        self.folder.mkdir()
        self.mark = root / "ran"
        self.base = base

    @property
    def site(self) -> Path:
        """Where the modules of the framework are."""
        return next(self.base.interpreter.parent.parent.glob("lib/python*/site-packages"))

    def add_to_base(self, name: str, version: str, files: Mapping[str, str], requires: Sequence[str] = ()) -> None:
        wheel = write_wheel(self.folder, name, version, files, requires)
        zipfile.ZipFile(wheel).extractall(self.site)
        wheel.unlink()

    def make(self, *lines: str, told: Told | None = None, build: str = "") -> Environment:
        return make_layer(self.base, self.wanted(*lines, build=build), told or Told())

    def wanted(self, *lines: str, build: str = "") -> LayerRequirements:
        options = ["--only-binary :all:", *([f"--no-binary {build}"] if build else [])]
        options += ["--require-hashes"] if any("--hash" in line for line in lines) else []
        text = "\n".join([*options, *lines, ""])
        places = [*("" for _ in options), *(f"req.txt:{number}" for number, _ in enumerate(lines, start=1))]
        return LayerRequirements(text, hashlib.sha256(text.encode()).hexdigest()[:16], "req.txt", places)

    def nothing_is_left(self, wanted: LayerRequirements) -> bool:
        missing = find.find_environment(f"tiny+{wanted.digest}")
        assert isinstance(missing, MissingEnvironment)
        return not find.layer_folder(self.base, wanted.digest).exists()


@pytest.fixture(scope="module")
def tiny_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache with the environment `tiny`, which all tests of a file share."""
    with pytest.MonkeyPatch.context() as patch:
        cache_home = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(cache_home))
        for module in (find, make, layers):
            patch.setattr(module, "environment_rows", lambda: {"tiny": MINI})
        make.make_environment("tiny", Told())
        yield cache_home


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_cache: Path) -> Iterator[Shelf]:
    for name, value in {**PYTHON, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}.items():
        monkeypatch.setenv(name, value)
    base = find.find_environment("tiny")
    assert isinstance(base, Environment)
    shelf = Shelf(tmp_path, base)
    before = set(shelf.site.iterdir())
    for name, requires in (("mini", ("helper>=1",)), ("helper", ())):
        shelf.add_to_base(name, "1.0", {f"{name}/__init__.py": "VERSION = 1\n"}, requires)
    yield shelf
    more = {*shelf.site.iterdir(), *cache.environments_cache().glob(f"*{find.LAYER}*-*")} - before
    subprocess.run(["rm", "-rf", *more], check=True)
