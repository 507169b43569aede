# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import os
import re
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.releases import CHECKOUT, PROGRAMS, release, served

# Fixtures are found by their names here.
from tests.support.releases import pages as pages
from tests.support.releases import releases as releases
from tests.support.releases import secure as secure
from tests.support.waiting import eventually
from trainyard.engine.build import MODULE, SOURCE, oldest_go
from trainyard.engine.obtain import cached_engine, engine_folder, version_of
from trainyard.engine.progress import Progress
from trainyard.engine.versions import ENGINE_VERSION, EngineError, Machine, at_least


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
    assert len([line for line in said.splitlines() if "cannot be downloaded" in line]) == 1


@pytest.mark.parametrize("way", ["http", "file"])
def test_a_download_without_tls_needs_the_users_checksum(
    machine: Any, pages: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    machine.go()
    checksum = release(pages)
    with served(pages.parent) as address:
        machine.env["TRAINYARD_PULUMI_RELEASES"] = address if way == "http" else pages.parent.as_uri()
        with pytest.raises(EngineError, match="without TLS, both archive and checksum could be changed on the way"):
            engine_folder(machine.env)
        assert not cached_engine(machine.env, Machine.here()).exists()
        machine.env["TRAINYARD_PULUMI_SHA256"] = checksum.upper()
        folder = engine_folder(machine.env)
        assert sorted(os.listdir(folder)) == list(PROGRAMS)
        shutil.rmtree(folder)
        machine.env["TRAINYARD_PULUMI_SHA256"] = "0" * 64
        assert (engine_folder(machine.env) / "pulumi-resource-pulumi-python").exists(), "built from its pinned source"
    assert f"its SHA-256 is {checksum}, expected is {'0' * 64}" in capsys.readouterr().err


def test_a_mirror_that_leads_away_from_tls_is_not_followed(
    machine: Any, pages: Path, secure: ssl.SSLContext, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.go()
    release(pages)
    with served(pages.parent) as plain, served(pages.parent, secure, away=plain) as mirror:
        machine.env["TRAINYARD_PULUMI_RELEASES"] = f"{mirror}/away"
        assert (engine_folder(machine.env) / "pulumi-resource-pulumi-python").exists()
    assert f"redirected to {plain}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TRAINYARD_PULUMI_RELEASES", "ftp://mirror.example"),
        ("TRAINYARD_PULUMI_RELEASES", "mirror.example"),
        ("TRAINYARD_PULUMI_SHA256", "abc"),
    ],
)
def test_an_invalid_mirror_is_refused(machine: Any, variable: str, text: str) -> None:
    machine.go()
    machine.env["TRAINYARD_PULUMI_RELEASES"] = "https://127.0.0.1:9"
    machine.env[variable] = text
    with pytest.raises(EngineError, match=f"{variable} is '{text}'"):
        engine_folder(machine.env)


@pytest.mark.parametrize("programs", [("pulumi", "pulumi"), ("pulumi", "../pulumi"), ("..",)])
def test_an_archive_that_is_no_release_is_not_unpacked(
    machine: Any, releases: tuple[Path, str], capsys: pytest.CaptureFixture[str], programs: tuple[str, ...]
) -> None:
    machine.go()
    machine.env["TRAINYARD_PULUMI_RELEASES"] = releases[1]
    release(releases[0], programs=programs)
    assert (engine_folder(machine.env) / "pulumi-resource-pulumi-python").exists()
    assert "cannot be unpacked" in capsys.readouterr().err


STRANGER = 65534
# Only root can give a file away.
HOWS = ("mode", "link") if os.geteuid() else ("owner", "mode", "link")


@pytest.mark.parametrize("place", ["trainyard", "engine", "version", "pulumi"])
@pytest.mark.parametrize("how", HOWS)
def test_a_cache_that_others_may_write_to_is_not_used(machine: Any, place: str, how: str) -> None:
    go = machine.go()
    folder = engine_folder(machine.env)
    go.unlink()
    upper = {"trainyard": folder.parent.parent, "engine": folder.parent}
    at = {**upper, "version": folder, "pulumi": folder / "pulumi"}[place]
    if how == "mode":
        at.chmod(0o777)
    elif how == "link":
        at.rename(machine.root / "elsewhere")
        at.symlink_to(machine.root / "elsewhere")
    else:
        os.chown(at, STRANGER, STRANGER, follow_symlinks=False)
    why = {"owner": f"belongs to the user {STRANGER}", "mode": "may be written by others", "link": "is a link"}[how]
    with pytest.raises(EngineError, match=f"{at} {why}.*\n.*XDG_CACHE_HOME"):
        engine_folder(machine.env)


def test_a_lock_that_is_a_link_is_not_followed(machine: Any) -> None:
    machine.go()
    folder = cached_engine(machine.env, Machine.here())
    folder.parent.mkdir(parents=True)
    target = machine.root / "precious"
    target.write_text("precious")
    (folder.parent / f".{folder.name}.lock").symlink_to(target)
    with pytest.raises(EngineError, match="is a link: remove it"):
        engine_folder(machine.env)
    assert target.read_text() == "precious"


def test_the_second_time_the_cache_answers(machine: Any) -> None:
    go = machine.go()
    first = engine_folder(machine.env)
    go.unlink()
    assert engine_folder(machine.env) == first


def test_leftovers_of_killed_processes_are_never_used(machine: Any) -> None:
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


def test_a_failed_build_shows_the_last_lines_of_go_and_a_remedy(machine: Any) -> None:
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
        [sys.executable, "-m", "trainyard.engine", "path"],
        cwd=CHECKOUT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
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
    command = [sys.executable, "-m", "trainyard.engine", "path"]
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
        eventually(lambda: any("waiting for it" in path.read_text() for path in said))
        gate.write_text("go on\n")
        folders = [process.communicate(timeout=300)[0] for process in processes]
    assert folders == [f"{cached_engine(machine.env, Machine.here())}\n"] * 2
    assert machine.log().count("started") == 1


def test_an_old_go_is_not_used(machine: Any) -> None:
    machine.go(version="go1.18")
    env = machine.env | {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    with pytest.raises(EngineError, match="Go could not be installed from PyPI"):
        engine_folder(env)
    assert not any(line.startswith("build") for line in machine.log())


def test_a_cache_that_cannot_be_written_says_so(machine: Any) -> None:
    (machine.root / "cache").write_text("a file where a folder should be")
    with pytest.raises(EngineError, match="XDG_CACHE_HOME"):
        engine_folder(machine.env)


def test_the_pinned_modules_have_the_engines_version() -> None:
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


def test_a_failed_module_download_shows_the_error_and_a_remedy(machine: Any) -> None:
    machine.go()
    machine.program(
        "go",
        """case "$*" in "env -json "*) echo '{}' ;; env*) echo go1.99.0 ;;
*) echo "verifying module: checksum mismatch" >&2; exit 1 ;; esac""",
    )
    with pytest.raises(EngineError, match="`go mod download` failed:\n  verifying module: checksum mismatch\nInstall"):
        engine_folder(machine.env)


def test_pulumis_module_is_built_without_the_command_that_browses_its_cloud(machine: Any) -> None:
    machine.go(build='dirname "$2" > "$LOG.out"; ls "$(dirname "$2")/source/pkg/cmd/pulumi/cloud" > "$LOG.files"; '
               'tail -n 1 "$(dirname "$2")/source/go.mod" > "$LOG.mod"')  # fmt: skip
    folder = engine_folder(machine.env)
    assert (machine.root / "log.files").read_text().split() == ["api.go", "envelope.go", "resolve.go"]
    replaced = (machine.root / "log.mod").read_text()
    assert replaced == f'replace {MODULE} => "{(machine.root / "log.out").read_text().strip()}/source/pkg"\n'
    assert not (folder / "source").exists()
