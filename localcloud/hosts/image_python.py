# SPDX-License-Identifier: Apache-2.0
"""The `python` of a node: that of the local environment, extended so that it finds the launcher as in an image.

An image has the launcher in its Python's site-packages, because `python -I -m launcher` ignores PYTHONPATH. The local
environments are shared by all checkouts of a machine, so they cannot contain a launcher. Instead each node gets an
empty virtual environment over the shared one.
"""

from __future__ import annotations

from pathlib import Path

from localcloud.environments.layout import SETTINGS, Layout

_NAMES = ("python", "python3")
# The file of launcher/images/system.sh: in isolated mode the launcher's folder comes first, before any package of the
# same name, and in training it comes last.
FINDS = """\
{launcher}
import sys; sys.flags.isolated and sys.path.insert(0, {launcher!r})
"""


def write(folder: Path, interpreter: Path, parts: Layout, launcher: str) -> None:
    """Makes the folder. `parts`: the layout of the interpreter's environment. `launcher`: the package's folder, as the
    node sees it."""
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        link = programs / name
        link.unlink(missing_ok=True)
        link.symlink_to(interpreter)
    (folder / SETTINGS).write_text(parts.settings, "utf-8")
    for site in parts.sites:
        own = folder / "lib" / site.parent.name / "site-packages"
        own.mkdir(parents=True, exist_ok=True)
        # This also reads the environment's own `.pth` files. Python finds a base environment by itself.
        below = "" if parts.is_base else f"import site; site.addsitedir({str(site)!r})\n"
        (own / "trainyard.pth").write_text(below + FINDS.format(launcher=launcher), "utf-8")
    _show_to_all(folder)


def _show_to_all(folder: Path) -> None:
    """Makes the folder readable for the run's user: the cloud's umask may have closed it."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
