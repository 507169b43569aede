# SPDX-License-Identifier: Apache-2.0
"""Makes small packages. pip finds them in a folder, without an index."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

# A build backend within the package, so that a build needs nothing else. It creates a file that shows that it ran.
_BACKEND = """
import pathlib, zipfile
pathlib.Path({mark!r}).touch()

def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, name), "w") as wheel:
        for file, text in {files!r}.items():
            wheel.writestr(file, text)
    return name
"""


def write_wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: Sequence[str] = ()) -> Path:
    """Writes a pure wheel."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in _wheel_files(name, version, files, requires).items():
            wheel.writestr(file, text)
    return path


def write_source(folder: Path, name: str, version: str, files: Mapping[str, str], mark: Path) -> Path:
    """Writes a source archive. Its build backend and its setup.py create the file `mark` when they run."""
    backend = _BACKEND.format(mark=str(mark), name=name, version=version, files=_wheel_files(name, version, files, ()))
    texts = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
        "setup.py": f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in texts.items():
            member = tarfile.TarInfo(f"{name}-{version}/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _wheel_files(name: str, version: str, files: Mapping[str, str], requires: Sequence[str]) -> dict[str, str]:
    told = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    whole = {
        **files,
        f"{told}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{told}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    return {**whole, f"{told}/RECORD": "".join(f"{file},,\n" for file in (*whole, f"{told}/RECORD"))}
