# SPDX-License-Identifier: Apache-2.0
"""Notes what an image has under the other names that requirements use: `python known_as.py known_as.txt`.

pip knows a package by one name and version. So `tensorflow` is noted where tensorflow-cpu is installed (a line of
known_as.txt, from catalog/modules.toml), and 1.13.0 for a PyTorch whose base calls it 1.13.0a0+gitunknown. A note has
no files. Prints constraints for builds of the base's own, which no index has. Runs with the Python of any base.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

UNRELEASED = re.compile(r"(?P<release>\d+(\.\d+)*)(a|b|rc|\.?dev)\d+\+.+")


def main(known_as: Path) -> None:
    """Writes the notes."""
    site = Path(sysconfig.get_path("purelib"))
    installed = _installed()
    for line in known_as.read_text("utf-8").splitlines():
        name, *others = line.split()
        for other in others:
            if name in installed and other not in installed:
                _write_note(site, other, installed[name][0])
    for name, (version, place) in installed.items():
        unreleased = UNRELEASED.fullmatch(version)
        # Of two notes in one folder, either could be read.
        if unreleased and place != site:
            _write_note(site, name, unreleased["release"])
        elif "+" in version:
            print(f"{name}=={version}")


def _installed() -> dict[str, tuple[str, Path]]:
    """The packages that an import would find, with their versions and folders."""
    installed: dict[str, tuple[str, Path]] = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name:
            place = Path(str(one.locate_file("")))
            installed.setdefault(re.sub(r"[-_.]+", "-", name).lower(), (one.version, place))
    return installed


def _write_note(site: Path, name: str, version: str) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (folder / "INSTALLER").write_text("trainyard", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
