# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud import control
from localcloud.control import Cloud

_START = "import sys; from pathlib import Path; from localcloud import control; control.start(Path(sys.argv[1]))"


@pytest.fixture
def cloud_of_nobody(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud whose account has no privilege whatever: a user that is not root, without capabilities."""
    home = tmp_path / "cloud"
    try:
        subprocess.run(
            ["unshare", "--user", "--map-user=65534", "--map-group=65534", sys.executable, "-c", _START, str(home)],
            check=True, timeout=120, cwd=Path(__file__).parents[3],
        )  # fmt: skip
        cloud = control.running(home)
        assert cloud is not None
        assert "CapEff:\t0000000000000000" in Path(f"/proc/{cloud.pid}/status").read_text()
        yield cloud
    finally:
        control.stop(home)
