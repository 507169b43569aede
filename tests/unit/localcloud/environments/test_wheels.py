# SPDX-License-Identifier: Apache-2.0
"""Wheels that would write outside of the environment are refused before pip gets them; the usual ones are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcloud.environments.watched_commands import MakeError
from localcloud.environments.wheels import require_confined_wheel
from tests.support.wheels import HostileWheel, hostile_wheels, write_raw_wheel

HOSTILE = hostile_wheels("/home/someone/.local/bin/git")
SCRIPTS = """[console_scripts]
accelerate = accelerate.commands.accelerate_cli:main
f2py3.11=numpy.f2py.f2py2e:main
c++filt = tools.filter:Main.run [fast,slow]
torchrun = torch.distributed.run : main

# a comment
[gui_scripts]
plot = plots:show

[mkdocs.plugins]
material/search = material.plugins.search.plugin:SearchPlugin
"""


@pytest.mark.parametrize("wheel", HOSTILE.values(), ids=HOSTILE)
def test_a_wheel_that_may_write_outside_is_refused(tmp_path: Path, wheel: HostileWheel) -> None:
    with pytest.raises(MakeError, match=r"req\.txt: the package 'rude-1\.0-.*is not installed, because") as refused:
        require_confined_wheel(wheel.write(tmp_path), "req.txt")
    assert str(refused.value).replace("\n", "").isprintable(), "a wheel writes no control characters to a terminal"


def test_a_usual_wheel_is_accepted(tmp_path: Path) -> None:
    files = [
        "pkg/__init__.py", "pkg/_vendored/other-1.0.dist-info/METADATA", "pkg.libs/lib.so.1", "pkg/a b/ünï.txt",
        "usual-1.0.data/scripts/run.sh", "usual-1.0.data/data/share/man/x.1", "usual-1.0.data/headers/x.h",
        "usual-1.0.data/purelib/more.py", "usual-1.0.data/platlib/most.so", "late.pth", "pkg/empty/",
    ]  # fmt: skip
    entries = [*((name, "x") for name in files), ("usual-1.0.dist-info/entry_points.txt", SCRIPTS)]
    require_confined_wheel(write_raw_wheel(tmp_path, "usual", entries, {}), "req.txt")


def test_a_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torn-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(MakeError, match="it cannot be read"):
        require_confined_wheel(tmp_path / "torn-1.0-py3-none-any.whl", "req.txt")
