# SPDX-License-Identifier: Apache-2.0
"""Imports in an untrusted archive are read within limits. Unreadable files count as empty."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from catalog import imports
from catalog.imports import imported_modules

# In a separate process, because it changes Python's garbage collection.
_SWITCHES = """
import ast, gc, threading, time
from pathlib import Path
from catalog.imports import parse_python

class Slow:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.0005)  # lets another thread go on

def work(depth, end):
    if depth:
        return work(depth - 1, end)
    while time.monotonic() < end and not failures:
        Slow(), Slow()
        try:
            parse_python(source)
        except SystemError as error:
            failures.append(str(error))

gc.set_threshold(50)
source, failures = Path(ast.__file__).read_text()[:20000].rpartition("\\ndef")[0], []
threads = [threading.Thread(target=work, args=(5 * one, time.monotonic() + 2)) for one in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failures)
"""


def _archive(folder: Path) -> Path:
    path = folder / "code.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"code/{number}.py", f"import torch\n# {'long ' * 50}{number}\n")
    return path


def test_the_directory_of_an_archive_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = _archive(tmp_path)
    assert "torch" in imported_modules(archive)
    monkeypatch.setattr(imports, "_MOST_DIRECTORY", 100)
    assert not imported_modules(archive), "Python would read it whole"


def test_a_directory_that_says_its_size_elsewhere_is_not_read(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    content = archive.read_bytes()
    end = content.rindex(b"PK\x05\x06")
    archive.write_bytes(content[:end] + b"PK\x06\x07" + bytes(16) + content[end:])
    assert not imported_modules(archive)


def test_what_is_packed_wrongly_counts_as_empty(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    content = bytearray(archive.read_bytes())
    start = content.index(b"code/0.py") + len(b"code/0.py")
    content[start : start + 8] = b"\xff" * 8
    archive.write_bytes(content)
    assert not imported_modules(archive)


def test_threads_do_not_disturb_one_another() -> None:
    told = subprocess.run(
        [sys.executable, "-c", _SWITCHES], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
    )
    assert (told.stdout, told.stderr) == ("[]\n", "")
