# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from localcloud import control
from localcloud.control import Cloud
from tests.support.programs import require_program

_START = "import sys; from pathlib import Path; from localcloud import control; control.start_cloud(Path(sys.argv[1]))"
_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")


def require_installed_tools() -> None:
    """Skips without system packages for networks: another account cannot read those in a user's cache."""
    require_program("ip")
    require_program("nft")


@contextmanager
def nobodys_cloud(home: Path, *before: str) -> Iterator[Cloud]:
    """A cloud whose account is not root and has no capabilities. `before`: a command prefix that starts the cloud."""
    require_installed_tools()
    try:
        subprocess.run(
            [*before, *_NOBODY, sys.executable, "-c", _START, str(home)],
            check=True, timeout=120, cwd=Path(__file__).parents[3],
        )  # fmt: skip
        cloud = control.find_running_cloud(home)
        assert cloud is not None
        assert "CapEff:\t0000000000000000" in Path(f"/proc/{cloud.pid}/status").read_text()
        yield cloud
    finally:
        control.stop_cloud(home)


# In a separate mount namespace: lets every account enter a folder, and shows some of its content.
_OPENED = """
set -e
hold=$1; closed=$2; shift 2
mount --bind "$closed" "$hold"
mount -t tmpfs -o mode=755 none "$closed"
while [ "$1" != -- ]; do mkdir -p "$1"; mount --bind "$hold/${1#"$closed"/}" "$1"; shift; done
umount "$hold"; shift
cd "$PWD"  # which lies in what was shown just now, perhaps
exec "$@"
"""
_NOBODYS = 65534


@contextmanager
def really_nobodys_cloud(home: Path) -> Iterator[Cloud]:
    """A cloud of the account `nobody`, which owns no other file on this machine, so not even the interpreter's. Only
    root can switch accounts. The given folder is not used, because `nobody` cannot enter a test's folder.
    """
    needed = [Path(path).resolve() for path in (sys.base_prefix, sys.prefix, Path(__file__).parents[3])]
    with tempfile.TemporaryDirectory(prefix="nobodys-") as folder:
        os.chown(folder, _NOBODYS, _NOBODYS)
        own = Path(folder) / "cloud"
        account = ("setpriv", f"--reuid={_NOBODYS}", f"--regid={_NOBODYS}", "--clear-groups")
        words = [*_let_through(needed, home.parent), *account, "env", f"HOME={folder}"]
        words += [sys.executable, "-c", _START, str(own)]
        try:
            subprocess.run(words, check=True, timeout=120, cwd=Path(__file__).parents[3])
            cloud = control.find_running_cloud(own)
            assert cloud is not None
            assert os.stat(f"/proc/{cloud.pid}").st_uid == _NOBODYS
            yield cloud
        finally:
            control.stop_cloud(own)


def _let_through(needed: Sequence[Path], folder: Path) -> list[str]:
    """A command prefix that makes these paths accessible. Some may be in folders that only their owner can enter, such
    as an interpreter in a home.
    """
    words: list[str] = []
    for number, closed in enumerate(dict.fromkeys(filter(None, map(_closed, needed)))):
        hold = folder / f"hold-{number}"
        hold.mkdir()
        below = dict.fromkeys(str(path) for path in needed if path.is_relative_to(closed))
        words += ["unshare", "--mount", "bash", "-c", _OPENED, "bash", str(hold), str(closed), *below, "--"]
    return words


def _closed(path: Path) -> Path | None:
    """The first folder on the path that only its owner may enter."""
    return next((way for way in reversed(path.parents) if not os.stat(way).st_mode & 0o001), None)


@pytest.fixture
def cloud_of_nobody(tmp_path: Path) -> Iterator[Cloud]:
    with nobodys_cloud(tmp_path / "cloud") as cloud:
        yield cloud
