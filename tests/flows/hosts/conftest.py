# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localcloud import control
from localcloud.control import Cloud

_START = "import sys; from pathlib import Path; from localcloud import control; control.start(Path(sys.argv[1]))"
_NOBODY = ("unshare", "--user", "--map-user=65534", "--map-group=65534")


@contextmanager
def nobodys_cloud(home: Path, *before: str) -> Iterator[Cloud]:
    """A cloud whose account has no privilege whatever: a user that is not root, without capabilities. `before` are the
    words of a command that starts others."""
    try:
        subprocess.run(
            [*before, *_NOBODY, sys.executable, "-c", _START, str(home)],
            check=True, timeout=120, cwd=Path(__file__).parents[3],
        )  # fmt: skip
        cloud = control.running(home)
        assert cloud is not None
        assert "CapEff:\t0000000000000000" in Path(f"/proc/{cloud.pid}/status").read_text()
        yield cloud
    finally:
        control.stop(home)


@pytest.fixture
def cloud_of_nobody(tmp_path: Path) -> Iterator[Cloud]:
    with nobodys_cloud(tmp_path / "cloud") as cloud:
        yield cloud
