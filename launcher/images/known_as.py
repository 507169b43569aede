# SPDX-License-Identifier: Apache-2.0
"""Writes metadata for installed packages under other names that requirements use: `python known_as.py known_as.txt`.

pip knows a package by one name and version. So an image with tensorflow-cpu gets metadata of `tensorflow` (a line of
known_as.txt, from catalog/modules.toml). A PyTorch that its base calls 1.13.0a0+gitunknown gets metadata of 1.13.0.
No files belong to such metadata. Prints constraints for builds of the base's own, which no index has. Runs with the
Python of any base.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

UNRELEASED = re.compile(r"(?P<release>\d+(\.\d+)*)(a|b|rc|\.?dev)\d+\+.+")


def main(known_as: Path) -> None:
    """Writes the metadata, and prints the constraints."""
    site = Path(sysconfig.get_path("purelib"))
    # The packages that an import would find.
    installed: dict[str, tuple[str, Path]] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            folder = Path(str(distribution.locate_file("")))
            installed.setdefault(re.sub(r"[-_.]+", "-", name).lower(), (distribution.version, folder))
    for line in known_as.read_text("utf-8").splitlines():
        name, *others = line.split()
        for other in others:
            if name in installed and other not in installed:
                _write_metadata(site, other, installed[name][0])
    for name, (version, place) in installed.items():
        unreleased = UNRELEASED.fullmatch(version)
        # With metadata of two versions in one folder, either could be read.
        if unreleased and place != site:
            _write_metadata(site, name, unreleased["release"])
        elif "+" in version:
            print(f"{name}=={version}")


def _write_metadata(site: Path, name: str, version: str) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (folder / "INSTALLER").write_text("trainyard", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
