# SPDX-License-Identifier: Apache-2.0
"""The `python` of a node: that of the local environment, which also finds the launcher, as an image's own does.

An image holds the launcher in its Python, because `python -I -m launcher` ignores PYTHONPATH. All checkouts of a
machine share the environments, so none of these can hold it. Each node gets a few files of its own instead: a virtual
environment without packages, over the shared one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_NAMES = ("python", "python3")
_SETTINGS = "pyvenv.cfg"
# As launcher/images/system.sh writes it: the launcher itself starts isolated, and comes before any package of its name.
# In training it comes last.
FINDS = """\
{launcher}
import sys; sys.flags.isolated and sys.path.insert(0, {launcher!r})
"""


def write(folder: Path, interpreter: Path, launcher: str) -> None:
    """Makes the folder. `launcher` is the folder of the package, as the node sees it."""
    programs, prefix = folder / "bin", interpreter.parent.parent
    programs.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        link = programs / name
        link.unlink(missing_ok=True)
        link.symlink_to(interpreter)
    (folder / _SETTINGS).write_text(_settings(prefix, interpreter), "utf-8")
    for site in _sites(prefix, interpreter):
        own = folder / "lib" / site.parent.name / "site-packages"
        own.mkdir(parents=True, exist_ok=True)
        # The environment's own `.pth` files count, too.
        below = f"import site; site.addsitedir({str(site)!r})\n" if (prefix / _SETTINGS).exists() else ""
        (own / "trainyard.pth").write_text(below + FINDS.format(launcher=launcher), "utf-8")
    _show_to_all(folder)


def _show_to_all(folder: Path) -> None:
    """The run's user is another than the cloud's, which may keep its files to itself."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def _settings(prefix: Path, interpreter: Path) -> str:
    """Those of the environment. One that is no virtual environment is the base of this one."""
    if (prefix / _SETTINGS).exists():
        return (prefix / _SETTINGS).read_text("utf-8")
    return f"home = {interpreter.resolve().parent}\ninclude-system-site-packages = true\n"


def _sites(prefix: Path, interpreter: Path) -> Iterator[Path]:
    """The folder of modules of each version that the prefix has: more than one only in a system's own."""
    for place in dict.fromkeys((prefix, interpreter.resolve().parent.parent)):
        found = sorted(place.glob("lib/python3.*/"))
        yield from (folder / "site-packages" for folder in found)
        if found:
            return
