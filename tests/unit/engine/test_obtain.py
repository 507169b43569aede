# SPDX-License-Identifier: Apache-2.0
import contextlib
import functools
import hashlib
import http.server
import io
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.build import SOURCE, oldest_go
from engine.cache import cached_engine, version_of
from engine.obtain import engine_folder
from engine.progress import Progress
from engine.versions import ENGINE_VERSION, EngineError, Machine, at_least

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder served as Pulumi's release pages are."""
    pages = tmp_path / "releases"
    folder = pages / f"v{ENGINE_VERSION}"
    folder.mkdir(parents=True)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(pages))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def release(folder: Path, checksum: str | None = None) -> None:
    """An archive as Pulumi publishes it, of scripts."""
    here = Machine.here()
    name = f"pulumi-v{ENGINE_VERSION}-{here.os}-{here.processor.replace('amd64', 'x64')}.tar.gz"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for program in ("pulumi", "pulumi-language-python"):
            script = f"#!/bin/sh\necho v{ENGINE_VERSION}\n".encode()
            member = tarfile.TarInfo(f"pulumi/{program}")
            member.size = len(script)
            archive.addfile(member, io.BytesIO(script))
    (folder / name).write_bytes(content.getvalue())
    found = checksum or hashlib.sha256(content.getvalue()).hexdigest()
    (folder / f"pulumi-{ENGINE_VERSION}-checksums.txt").write_text(f"{found}  {name}\n")


def test_a_new_enough_pulumi_on_path_is_taken_and_nothing_is_made(machine: Any) -> None:
    machine.program("pulumi", "echo v3.999.1")
    machine.go()
    assert engine_folder(machine.env) == machine.path
    assert machine.log() == []
    assert not (machine.root / "cache").exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [("echo v3.12.0", "is v3.12.0, older than"), ("exit 1", "does not run"), ("echo hello", "is hello, older than")],
)
def test_an_unfit_pulumi_on_path_is_named_and_passed_over(
    machine: Any, capsys: pytest.CaptureFixture[str], body: str, why: str
) -> None:
    machine.program("pulumi", body)
    machine.go()
    folder = engine_folder(machine.env)
    assert folder == cached_engine(machine.env, Machine.here())
    assert why in capsys.readouterr().err


def test_the_download_comes_before_the_build(machine: Any, releases: tuple[Path, str]) -> None:
    machine.go()
    machine.env["TRAINYARD_PULUMI_RELEASES"] = releases[1]
    release(releases[0])
    folder = engine_folder(machine.env)
    assert version_of(folder / "pulumi", machine.env) == f"v{ENGINE_VERSION}"
    assert sorted(os.listdir(folder)) == ["pulumi", "pulumi-language-python"]
    assert machine.log() == []


@pytest.mark.parametrize("checksum", ["0" * 64, None])
def test_a_download_that_fails_or_is_changed_leads_to_the_build(
    machine: Any, releases: tuple[Path, str], capsys: pytest.CaptureFixture[str], checksum: str | None
) -> None:
    machine.go()
    machine.env["TRAINYARD_PULUMI_RELEASES"] = releases[1]
    if checksum:
        release(releases[0], checksum)
    folder = engine_folder(machine.env)
    assert (folder / "pulumi-resource-pulumi-python").exists()
    said = capsys.readouterr().err
    assert ("its SHA-256 is" if checksum else "404") in said
    assert len([line for line in said.splitlines() if "not to be had" in line]) == 1


def test_the_second_time_the_cache_answers(machine: Any) -> None:
    go = machine.go()
    first = engine_folder(machine.env)
    go.unlink()
    assert engine_folder(machine.env) == first


def test_what_a_dead_process_left_is_never_used(machine: Any) -> None:
    machine.go()
    folder = cached_engine(machine.env, Machine.here())
    folder.mkdir(parents=True)
    (folder / "pulumi").write_text("half of it")
    part = folder.parent / f".{folder.name}.part-dead"
    part.mkdir()
    (part / "pulumi").write_text("#!/bin/sh\necho v9.9.9")
    assert engine_folder(machine.env) == folder
    assert version_of(folder / "pulumi", machine.env) == f"v{ENGINE_VERSION}"
    assert not part.exists()


def test_a_failed_build_shows_the_last_words_of_go_and_a_remedy(machine: Any) -> None:
    machine.go(build="for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do echo cause $i >&2; done; exit 3")
    with pytest.raises(EngineError) as caught:
        engine_folder(machine.env)
    said = str(caught.value)
    assert "  cause 14\n" in said
    assert "cause 1\n" not in said
    assert "Install Pulumi" in said
    assert os.listdir(cached_engine(machine.env, Machine.here()).parent) == [
        f".{cached_engine(machine.env, Machine.here()).name}.lock"
    ]


def test_a_build_that_does_not_run_is_not_published(machine: Any) -> None:
    machine.go(build='printf "#!/bin/sh\\nexit 1\\n" > "$2"; chmod 755 "$2"; exit 0')
    with pytest.raises(EngineError, match="does not run"):
        engine_folder(machine.env)
    assert not cached_engine(machine.env, Machine.here()).exists()


def test_without_any_way_the_command_says_what_to_install(machine: Any) -> None:
    # pip is told to look nowhere, so that no Go comes from PyPI either.
    env = machine.env | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    asked = subprocess.run(
        [sys.executable, "-m", "engine", "path"], cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=300
    )
    assert asked.returncode == 1
    assert asked.stdout == ""
    assert "no Go on PATH" in asked.stderr
    assert "Install Pulumi" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_two_set_ups_at_once_make_one_engine(machine: Any) -> None:
    gate = machine.root / "gate"
    os.mkfifo(gate)
    machine.go(build=f'echo started >> "$LOG"; read line < {gate}')
    command = [sys.executable, "-m", "engine", "path"]
    said = [machine.root / f"said-{number}" for number in range(2)]
    with contextlib.ExitStack() as stack:
        processes = []
        for path in said:
            errors = stack.enter_context(path.open("w"))
            process = subprocess.Popen(
                command, cwd=CHECKOUT, env=machine.env, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            processes.append(stack.enter_context(process))
            stack.callback(process.kill)
        until(lambda: any("waiting for it" in path.read_text() for path in said))
        gate.write_text("go on\n")
        folders = [process.communicate(timeout=300)[0] for process in processes]
    assert folders == [f"{cached_engine(machine.env, Machine.here())}\n"] * 2
    assert machine.log().count("started") == 1


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_an_old_go_is_not_used(machine: Any) -> None:
    machine.go(version="go1.18")
    env = machine.env | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    with pytest.raises(EngineError, match="Go cannot be had from PyPI"):
        engine_folder(env)
    assert not any(line.startswith("build") for line in machine.log())


def test_a_cache_that_cannot_be_written_says_so(machine: Any) -> None:
    (machine.root / "cache").write_text("a file where a folder should be")
    with pytest.raises(EngineError, match="XDG_CACHE_HOME"):
        engine_folder(machine.env)


def test_the_pinned_modules_are_the_version_said() -> None:
    pinned = re.search(r"github.com/pulumi/pulumi/pkg/v3 v(\S+)", (SOURCE / "go.mod").read_text())
    assert pinned
    assert pinned[1] == ENGINE_VERSION
    assert at_least(oldest_go(), "1.20")


def test_progress_off_a_terminal_is_a_line_now_and_then() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    for number in range(1000):
        progress.update(f"compiling: {number}")
    progress.say("done")
    assert stream.getvalue() == "trainyard: done\n"
