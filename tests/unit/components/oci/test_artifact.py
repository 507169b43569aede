# SPDX-License-Identifier: Apache-2.0
"""A code folder as an artifact: the same files, the same bytes, the same name."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from components.oci.resources.jobs import build_artifact
from schemas.job_code import code_files, left_out_links


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "train.py").write_text("print('loss 1')\n", "utf-8")
    (code / "lib" / "model.py").write_text("SIZE = 1\n", "utf-8")
    script = code / "start.sh"
    script.write_text("#!/bin/sh\n", "utf-8")
    script.chmod(0o755)
    return code


def test_times_owners_and_places_do_not_show(folder: Path, tmp_path: Path) -> None:
    first = build_artifact(folder, tmp_path / "one", "job")
    for path in code_files(folder):
        os.utime(path, (1, 1))
    moved = folder.rename(tmp_path / "elsewhere")
    second = build_artifact(moved, tmp_path / "two", "job")
    assert (first.file_name, first.digest, first.size) == (second.file_name, second.digest, second.size)
    assert first.path.read_bytes() == second.path.read_bytes()


def test_content_names_and_permissions_do(folder: Path, tmp_path: Path) -> None:
    digests = [build_artifact(folder, tmp_path, "job").digest]
    (folder / "train.py").write_text("print('loss 2')\n", "utf-8")
    digests.append(build_artifact(folder, tmp_path, "job").digest)
    (folder / "train.py").rename(folder / "fit.py")
    digests.append(build_artifact(folder, tmp_path, "job").digest)
    (folder / "fit.py").chmod(0o755)
    digests.append(build_artifact(folder, tmp_path, "job").digest)
    assert len(set(digests)) == 4


def test_what_tools_leave_behind_stays_behind(folder: Path, tmp_path: Path) -> None:
    before = build_artifact(folder, tmp_path, "job").digest
    for junk in ("__pycache__/train.cpython-311.pyc", ".git/HEAD", ".venv/bin/python", ".DS_Store", "lib/old.pyc"):
        path = folder / junk
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("junk", "utf-8")
    assert build_artifact(folder, tmp_path, "job").digest == before


def test_a_link_within_the_folder_travels_and_none_leads_out_of_it(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours", "utf-8")
    (folder / "link").symlink_to(secret)
    (folder / "away").symlink_to(tmp_path)
    (folder / "again").symlink_to("lib")
    (folder / "nowhere").symlink_to("nothing")
    (folder / "lib" / "train.py").symlink_to("../train.py")
    with zipfile.ZipFile(build_artifact(folder, tmp_path / "out", "job").path) as archive:
        assert archive.namelist() == ["start.sh", "train.py", "lib/model.py", "lib/train.py"]
        assert archive.read("lib/train.py") == archive.read("train.py")
    assert left_out_links(folder) == ["again", "away", "link", "nowhere"]


def test_no_machines_compression_shows(folder: Path, tmp_path: Path) -> None:
    (folder / "data.txt").write_text("a" * 10_000, "utf-8")
    with zipfile.ZipFile(build_artifact(folder, tmp_path / "out", "job").path) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}


def test_the_archive_unpacks_to_what_was_there(folder: Path, tmp_path: Path) -> None:
    made = build_artifact(folder, tmp_path / "out", "job")
    assert made.file_name == f"job-{made.digest[:16]}.zip"
    assert made.size == made.path.stat().st_size
    with zipfile.ZipFile(made.path) as archive:
        for path in code_files(folder):
            inside = path.relative_to(folder).as_posix()
            assert archive.read(inside) == path.read_bytes()
            executable = bool(archive.getinfo(inside).external_attr >> 16 & 0o100)
            assert executable == os.access(path, os.X_OK)


def test_nothing_unfinished_is_left(folder: Path, tmp_path: Path) -> None:
    build_artifact(folder, tmp_path / "out", "job")
    build_artifact(folder, tmp_path / "out", "job")
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".zip"]
