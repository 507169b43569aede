# SPDX-License-Identifier: Apache-2.0
"""Makes small packages. pip finds them in a folder, without an index."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


def write_raw_wheel(folder: Path, name: str, entries: Sequence[tuple[str, str]], links: Mapping[str, str]) -> Path:
    """Writes a wheel of version 1.0 as a hostile author does: any names, several times, with links to other files."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    whole = dict(entries)
    with zipfile.ZipFile(path, "w") as wheel, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name that stands twice
        for file, text in [*entries, *_wheel_files(name, "1.0", {}, ()).items()]:
            if file not in whole or (file, text) in entries:
                wheel.writestr(_entry(file, stat.S_IFREG | 0o644), text)
        for file, target in links.items():
            wheel.writestr(_entry(file, stat.S_IFLNK | 0o777), target)
    return path


def _entry(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo()
    entry.filename = entry.orig_filename = name
    entry.external_attr = mode << 16
    return entry


@dataclass(frozen=True)
class HostileWheel:
    """A wheel named `rude` that tries to write outside of the environment, or to be read in two ways."""

    entries: Sequence[tuple[str, str]] = ()
    links: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        return write_raw_wheel(folder, "rude", [("rude.py", "def main(): pass\n"), *self.entries], self.links)


def _script(line: str, section: str = "[console_scripts]") -> HostileWheel:
    return HostileWheel([("rude-1.0.dist-info/entry_points.txt", f"{section}\n{line}\n")])


def hostile_wheels(outside: str) -> Mapping[str, HostileWheel]:
    """Each way to write a file `outside`, an absolute path, or to hide that from whoever judges the wheel."""
    up = "../" * 12 + outside.lstrip("/")
    return {
        "a script with a path upwards": _script(f"{up} = rude:main"),
        "a script with an absolute path": _script(f"{outside} = rude:main"),
        "a script in a folder": _script("folder/../../x = rude:main"),
        "a script of a window": _script(f"{up} = rude:main", "[gui_scripts]"),
        "a section with spaces": _script(f"{up} = rude:main", "  [console_scripts]  "),
        "a path in the script's function": _script(f"x = {up} = rude:main"),
        "a path after an extra": _script(f"x = rude:main [a] {outside} = rude:main"),
        "a script of another line": _script(f"x = rude:main\x0b{outside} = rude:main"),
        "a script after a line of Unicode": _script(f"x = rude:main\u2028{outside} = rude:main"),
        "a script that is the folder above": _script(".. = rude:main"),
        "a script on a drive": _script("C:\\windows\\x = rude:main"),
        "a script with a colon": _script(f"{outside}: rude:main"),
        "a script that goes on in the next line": _script(f"x =\n  rude:main\n {outside} = rude:main"),
        "a file with a path upwards": HostileWheel([(up, "x")]),
        "a file with an absolute path": HostileWheel([(outside, "x")]),
        "a file beside the environment": HostileWheel([("rude/../../../../../../ready.json", "{}")]),
        "a file of a drive": HostileWheel([("C:/x", "x")]),
        "a file with backslashes": HostileWheel([(up.replace("/", "\\"), "x")]),
        "a file with a NUL": HostileWheel([(f"rude/x\x00{outside}", "x")]),
        "data with a path upwards": HostileWheel([(f"rude-1.0.data/data/{up}", "x")]),
        "scripts with a path upwards": HostileWheel([(f"rude-1.0.data/scripts/{up}", "x")]),
        "headers with a path upwards": HostileWheel([(f"rude-1.0.data/headers/{up}", "x")]),
        "data of another kind": HostileWheel([("rude-1.0.data/stdlib/x.py", "x")]),
        "data without a kind": HostileWheel([("rude-1.0.data/x.py", "x")]),
        "a link": HostileWheel(links={"rude/link": outside}),
        "a link and a file in it": HostileWheel([("rude/link/x", "x")], {"rude/link": "/tmp"}),
        "data that is a link": HostileWheel(links={"rude-1.0.data/data/link": outside}),
        "a list of scripts that stands twice": HostileWheel(
            [
                ("rude-1.0.dist-info/entry_points.txt", f"[console_scripts]\n{up} = rude:main\n"),
                ("rude-1.0.dist-info/entry_points.txt", "[console_scripts]\nx = rude:main\n"),
            ]
        ),
        "a second description": HostileWheel([("rude-2.0.dist-info/METADATA", "Name: rude\nVersion: 2.0\n")]),
        "a description in capitals": HostileWheel(
            [("RUDE-1.0.DIST-INFO/entry_points.txt", f"[console_scripts]\n{up} = rude:main\n")]
        ),
        "a record of a file outside": HostileWheel([("rude-1.0.dist-info/RECORD", f"{up},,\n")]),
    }
