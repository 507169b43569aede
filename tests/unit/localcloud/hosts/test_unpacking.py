# SPDX-License-Identifier: Apache-2.0
"""The same archives by Python's own filter and without it: the first releases of 3.11 have none."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from localcloud.hosts.unpacking import untar


@pytest.fixture(params=["filtered", "checked here"], autouse=True)
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "checked here":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)


def _link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, to, 0o755
    return made


def _archive(folder: Path, *members: tarfile.TarInfo) -> Path:
    path = folder / "code.tar"
    with tarfile.open(path, "w") as archive:
        for member in members:
            member.size = 2 if member.isfile() else 0
            archive.addfile(member, io.BytesIO(b"hi") if member.isfile() else None)
    return path


def _file(name: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.mode = 0o755
    return made


def test_what_lies_inside_is_there(tmp_path: Path) -> None:
    target = tmp_path / "code"
    target.mkdir()
    untar(
        _archive(
            tmp_path,
            _file("deep/main.sh"),
            _link("deep/again", "main.sh"),
            _link("same", "deep/main.sh", tarfile.LNKTYPE),
        ),
        target,
    )
    assert (target / "deep/main.sh").stat().st_mode & 0o100
    assert [(target / name).read_text() for name in ("deep/again", "same")] == ["hi", "hi"]


@pytest.mark.parametrize(
    "members",
    [
        lambda: [_file("../escaped")],
        lambda: [_link("out", "../..")],
        lambda: [_link("out", "/etc/passwd")],
        lambda: [_link("hard", "../secret", tarfile.LNKTYPE)],
        lambda: [_link("device", "", tarfile.FIFOTYPE)],
        lambda: [_link("deep/up", ".."), _link("deep/up/over", "../.."), _file("deep/up/over/escaped")],
    ],
)
def test_what_leads_out_is_refused(members: Callable[[], list[tarfile.TarInfo]], tmp_path: Path) -> None:
    target = tmp_path / "a" / "code"
    target.mkdir(parents=True)
    (tmp_path / "a" / "secret").touch()
    with pytest.raises(tarfile.TarError):
        untar(_archive(tmp_path, *members()), target)
    assert not list(tmp_path.rglob("escaped"))
