# SPDX-License-Identifier: Apache-2.0
"""Untrusted archives: none writes outside of its folder, and none exceeds the size limit, whatever size it states."""

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localcloud.hosts import unpacking
from localcloud.hosts.unpacking import RefusedError, is_archive, unpack_archive

ROOM, FILES = 1 << 20, 50


def _link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, to, 0o755
    return made


def _tar(folder: Path, *members: tarfile.TarInfo) -> Path:
    path = folder / "code.tar"
    with tarfile.open(path, "w") as archive:
        for member in members:
            member.size = 2 if member.isfile() else 0
            archive.addfile(member, io.BytesIO(b"hi") if member.isfile() else None)
    return path


def _zip(folder: Path, **files: bytes) -> Path:
    path = folder / "code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def _file(name: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.mode = 0o755
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    made = tmp_path / "a" / "code"
    made.mkdir(parents=True)
    return made


def test_all_files_are_unpacked(tmp_path: Path, target: Path) -> None:
    links = [_link("deep/again", "main.sh"), _link("same", "deep/main.sh", tarfile.LNKTYPE)]
    archive = _tar(tmp_path, _file("./deep/main.sh"), *links)
    assert is_archive(archive)
    assert unpack_archive(str(archive), str(target), ROOM, FILES)
    assert (target / "deep/main.sh").stat().st_mode & 0o100
    assert [(target / name).read_text() for name in ("deep/again", "same")] == ["hi", "hi"]
    assert unpack_archive(str(_zip(tmp_path, **{"more/one.py": b"1", "empty/": b""})), str(target), ROOM, FILES)
    assert (target / "more/one.py").read_bytes() == b"1"
    assert (target / "empty").is_dir()


def test_a_script_is_not_an_archive(tmp_path: Path, target: Path) -> None:
    for content in (b"", b"print(1)\n", b"#" * 2000):
        (tmp_path / "main.py").write_bytes(content)
        assert not is_archive(tmp_path / "main.py")
        assert not unpack_archive(str(tmp_path / "main.py"), str(target), ROOM, FILES)


@pytest.mark.parametrize(
    "members",
    [
        lambda: [_file("../escaped")],
        lambda: [_file("/tmp/escaped")],
        lambda: [_file("a/../../escaped")],
        lambda: [_link("out", "../..")],
        lambda: [_link("out", "/etc/passwd")],
        lambda: [_link("hard", "../secret", tarfile.LNKTYPE)],
        lambda: [_link("device", "", tarfile.FIFOTYPE)],
        lambda: [_link("device", "", tarfile.CHRTYPE)],
        lambda: [_link("deep/up", ".."), _link("deep/up/over", "../.."), _file("deep/up/over/escaped")],
        lambda: [_link("on", "y/.."), _link("y", "."), _file("on/escaped")],
        lambda: [_file("a/" * 200 + "deep")],
        lambda: [_file(str(number)) for number in range(FILES + 1)],
    ],
)
def test_members_outside_the_folder_or_above_the_limits_are_refused(
    members: Callable[[], list[tarfile.TarInfo]], tmp_path: Path, target: Path
) -> None:
    (tmp_path / "a" / "secret").touch()
    with pytest.raises(RefusedError):
        unpack_archive(str(_tar(tmp_path, *members())), str(target), ROOM, FILES)
    assert not list(tmp_path.rglob("escaped"))
    assert not Path("/tmp/escaped").exists()


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "..\\escaped", "a/../../escaped"])
def test_zip_names_outside_the_folder_are_refused(name: str, tmp_path: Path, target: Path) -> None:
    with pytest.raises(RefusedError, match="leads out of the archive"):
        unpack_archive(str(_zip(tmp_path, **{name: b"1"})), str(target), ROOM, FILES)


def _understated(path: Path, size: int) -> Path:
    """The same archive, but it states this size for its first file."""
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = content.index(mark) + offset
        content[at : at + 4] = struct.pack("<I", size)
    path.write_bytes(content)
    return path


def test_a_bomb_ends_at_the_limit_whatever_size_it_states(tmp_path: Path, target: Path) -> None:
    bomb = _zip(tmp_path, bomb=b"\0" * (64 * ROOM))
    assert bomb.stat().st_size < ROOM / 10
    with pytest.raises(RefusedError, match="larger than the disk"):
        unpack_archive(str(bomb), str(target), ROOM, FILES)
    assert (target / "bomb").stat().st_size <= ROOM
    with pytest.raises(RefusedError):
        unpack_archive(str(_understated(bomb, 10)), str(target), ROOM, FILES)
    with tarfile.open(tmp_path / "bomb.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("bomb")
        member.size = 64 * ROOM
        archive.addfile(member, io.BytesIO(b"\0" * member.size))
    with pytest.raises(RefusedError, match="larger than the disk"):
        unpack_archive(str(tmp_path / "bomb.tgz"), str(target), ROOM, FILES)


@pytest.mark.parametrize("cut", [30, 100, -30])
def test_a_broken_archive_is_refused_with_a_reason(cut: int, tmp_path: Path, target: Path) -> None:
    archive = _zip(tmp_path, main=os.urandom(500))
    content = archive.read_bytes()
    archive.write_bytes(content[:cut] + b"\xff" * 8 + content[cut + 8 :] if cut > 0 else content[:cut] + content[-22:])
    with pytest.raises(RefusedError):
        unpack_archive(str(archive), str(target), ROOM, FILES)


def _with_python() -> str:
    """Puts a `python` first into PATH, as an environment does: the machine may have none."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _started(tmp_path: Path, archive: Path, **more: Any) -> tuple[str, str]:
    """The output of the program that a node starts, and its report."""
    task = {
        "archive": str(archive), "name": "artifact.py", "target": str(tmp_path / "code"), "setting": "ENTRY",
        "entry": "", "command": [], "arguments": ["one"], "bytes": ROOM, "files": FILES, **more,
    }  # fmt: skip
    (tmp_path / "task.json").write_text(json.dumps(task))
    reader, writer = os.pipe()
    done = subprocess.run(
        [sys.executable, "-I", "-S", unpacking.__file__, str(tmp_path / "task.json")], capture_output=True, text=True,
        pass_fds=[writer], env={"PATH": _with_python(), unpacking.REPORT: str(writer)}, check=False,
    )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader) as report:
        return done.stdout + done.stderr, report.read()


def test_the_command_starts_where_the_code_is(tmp_path: Path) -> None:
    script = f"import os, signal, sys; print(os.getcwd(), sys.argv[1], '{unpacking.REPORT}' in os.environ)"
    archive = _zip(tmp_path, **{"in/main.py": script.encode(), "in/main.sh": b"echo $PWD $1; kill -PIPE $$; echo on"})
    where = tmp_path / "code"
    assert _started(tmp_path, archive, entry="in/main.py") == (f"{where} one False\n", "")
    assert _started(tmp_path, archive, entry="in/main.sh") == (f"{where} one\n", ""), "signals do as the system says"
    assert _started(tmp_path, archive, command=["echo", "own"]) == ("own one\n", "")
    (tmp_path / "plain.gz").write_bytes(b"\x1f\x8b no archive")
    assert "main.gz" in _started(tmp_path, tmp_path / "plain.gz", name="main.gz")[0], "started as what it is"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "ENTRY is not set. Set it to the file of the artifact that is to start"),
        ({"entry": "absent.py"}, "ENTRY 'absent.py' is not a file of the artifact"),
        ({"entry": "../task.json"}, "ENTRY '../task.json' is not a file of the artifact"),
        ({"entry": "main.py", "bytes": 1}, "The artifact cannot be unpacked: its files are larger than the disk of a"),
        ({"command": ["/absent"]}, "No such file or directory"),
    ],
)
def test_the_reason_why_nothing_starts_is_reported(tmp_path: Path, more: dict[str, Any], reason: str) -> None:
    printed, report = _started(tmp_path, _zip(tmp_path, **{"main.py": b"print('ran')"}), **more)
    assert printed == ""
    assert reason in next(iter(json.loads(report).values()))
