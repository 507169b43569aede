# SPDX-License-Identifier: Apache-2.0
"""The `python` of a node: that of the local environment, which also finds the launcher, as an image's own does.

An image holds the launcher in its Python, because `python -I -m launcher` ignores PYTHONPATH. All checkouts of a
machine share the environments, so none of these can hold it. Each node gets a few files of its own instead: a virtual
environment without packages, over the shared one.
"""

from __future__ import annotations

from pathlib import Path

from localcloud.environments.layout import SETTINGS, Layout

_NAMES = ("python", "python3")
# As launcher/images/system.sh writes it: the launcher itself starts isolated, and comes before any package of its name.
# In training it comes last.
FINDS = """\
{launcher}
import sys; sys.flags.isolated and sys.path.insert(0, {launcher!r})
"""


def write(folder: Path, interpreter: Path, parts: Layout, launcher: str) -> None:
    """Makes the folder. `parts` are those of the interpreter's environment, and `launcher` is the folder of the
    package, as the node sees it."""
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
        # The environment's own `.pth` files count, too. One that is a base is found by itself.
        below = "" if parts.is_base else f"import site; site.addsitedir({str(site)!r})\n"
        (own / "trainyard.pth").write_text(below + FINDS.format(launcher=launcher), "utf-8")
    _show_to_all(folder)


def _show_to_all(folder: Path) -> None:
    """The run's user is another than the cloud's, which may keep its files to itself."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
