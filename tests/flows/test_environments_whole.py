# SPDX-License-Identifier: Apache-2.0
"""An environment is complete or does not exist, even if making it is interrupted."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localcloud.environments import cache, find, make
from localcloud.environments.environment_rows import EnvironmentRow
from localcloud.environments.find import Environment, MissingEnvironment
from localcloud.environments.watched_commands import MakeError, run_watched
from tests.support.environments import TINY, Told
from tests.support.waiting import eventually

LONGEST_SECONDS = 120.0


@pytest.fixture
def with_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Rows of the test in place of the catalog's, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def use(*some: EnvironmentRow) -> None:
        table = {row.name: row for row in some}
        monkeypatch.setattr(find, "environment_rows", lambda: table)
        monkeypatch.setattr(make, "environment_rows", lambda: table)

    use(TINY)
    return use


def folder() -> Path:
    place = find.locate_environment(TINY)
    assert not isinstance(place, MissingEnvironment)
    return place[0]


@pytest.mark.usefixtures("with_rows")
def test_a_made_environment_is_found_and_not_made_again() -> None:
    told = Told()
    missing = find.find_environment("tiny")
    assert isinstance(missing, MissingEnvironment)
    assert missing.remedy == "trainyard environments make tiny"
    made = make.make_environment("tiny", told)
    assert make.make_environment("tiny", told) == made == find.find_environment("tiny")
    assert told.times_made == 1
    prefix = subprocess.run(
        [made.interpreter, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True
    )
    assert prefix.stdout.strip() == str(folder())


@pytest.mark.usefixtures("with_rows")
@pytest.mark.parametrize("place", ["cache", "folder", "stamp"])
def test_an_environment_that_others_may_write_to_is_not_used(place: str) -> None:
    make.make_environment("tiny", Told())
    at = {"cache": cache.environments_cache(), "folder": folder(), "stamp": folder() / cache.STAMP}[place]
    at.chmod(0o777)
    missing = find.find_environment("tiny")
    assert isinstance(missing, MissingEnvironment)
    if place != "stamp":
        assert f"{at} may be written by others" in missing.reason
    at.chmod(0o755)
    assert isinstance(find.find_environment("tiny"), Environment)


@pytest.mark.usefixtures("with_rows")
def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    place = folder()
    place.parent.mkdir(parents=True)
    (place.parent / f".{place.name}.lock").symlink_to(target)
    with pytest.raises(OSError, match="is a link: remove it"):
        make.make_environment("tiny", Told())
    assert target.read_text() == "precious"


@pytest.mark.usefixtures("with_rows")
@pytest.mark.parametrize("left", ["no stamp", "half a stamp", "no interpreter"])
def test_an_incomplete_environment_is_never_used_and_made_again(left: str) -> None:
    make.make_environment("tiny", Told())
    if left == "no stamp":
        (folder() / cache.STAMP).unlink()
    elif left == "half a stamp":
        (folder() / cache.STAMP).write_text((folder() / cache.STAMP).read_text()[:20])
    else:
        (folder() / "bin" / "python").unlink()
    assert isinstance(find.find_environment("tiny"), MissingEnvironment)
    told = Told()
    assert isinstance(make.make_environment("tiny", told), Environment)
    assert told.times_made == 1


@pytest.mark.usefixtures("with_rows")
def test_an_environment_whose_system_module_was_removed_counts_as_missing() -> None:
    make.make_environment("tiny", Told())
    stamp = json.loads((folder() / cache.STAMP).read_text())
    stamp["modules"]["json"] = "/nowhere/json/__init__.py"
    (folder() / cache.STAMP).write_text(json.dumps(stamp))
    assert isinstance(find.find_environment("tiny"), MissingEnvironment)


def test_an_environment_that_fails_its_test_does_not_exist(with_rows: Callable[..., None]) -> None:
    with_rows(replace(TINY, proof="assert 1 == 2, 'the extension was not compiled'"))
    with pytest.raises(MakeError, match="the extension was not compiled"):
        make.make_environment("tiny", Told())
    assert isinstance(find.find_environment("tiny"), MissingEnvironment)


# A program of the environment calls its repairs as PyTorch does.
CALLED = (
    "from importlib.metadata import entry_points; print(*[one.name for one in entry_points(group='torch.backends')])"
)


def test_a_repair_is_found_by_its_package_also_in_an_environment_on_top(with_rows: Callable[..., None]) -> None:
    repaired = replace(TINY, repair="torch_of_debian", repair_point="torch.backends")
    with_rows(repaired, replace(TINY, name="above", base="tiny"))
    for name in ("tiny", "above"):
        words = [str(make.make_environment(name, Told()).interpreter), "-c", CALLED]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "torch_of_debian\n"


def test_a_tested_environment_has_bytecode_whatever_the_callers_settings(
    with_rows: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    with_rows(replace(TINY, repair="torch_of_debian", proof="import torch_of_debian"))
    made = make.make_environment("tiny", Told())
    assert isinstance(made, Environment)
    assert [*made.interpreter.parents[1].glob("lib/python*/site-packages/__pycache__/torch_of_debian*.pyc")]


def test_missing_packages_are_named_with_the_command_and_not_installed_unasked(with_rows: Callable[..., None]) -> None:
    with_rows(replace(TINY, packages={"libnothing-dev": "/usr/include/nothing/*.h", "tool": "no-such-tool"}))
    with pytest.raises(MakeError) as raised:
        make.make_environment("tiny", Told())
    assert "apt-get install --no-install-recommends libnothing-dev tool" in str(raised.value)


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="this machine has no dpkg")
def test_a_package_that_apt_has_not_configured_is_reported(
    with_rows: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    database = tmp_path / "dpkg"
    (database / "info").mkdir(parents=True)
    (database / "updates").mkdir()
    about = "Version: 1.0\nMaintainer: x <x@y>\nArchitecture: all\nDescription: x\n"
    (database / "status").write_text(f"Package: python3-half\nStatus: install ok unpacked\n{about}")
    monkeypatch.setenv("DPKG_ADMINDIR", str(database))
    row = replace(TINY, packages={"python3-half": sys.executable})
    with_rows(row)
    with pytest.raises(MakeError, match=r"apt has not finished installing python3-half\n.*try again"):
        make.make_environment("tiny", Told())
    blocked = make.find_obstacle(row)
    assert blocked
    assert blocked.reason == "apt has not finished installing python3-half"
    (database / "status").write_text(f"Package: python3-half\nStatus: install ok installed\n{about}")
    assert make.find_obstacle(row) is None
    assert isinstance(make.make_environment("tiny", Told()), Environment)


def test_a_failure_is_one_line_without_a_traceback(with_rows: Callable[..., None]) -> None:
    with_rows(replace(TINY, proof="import no_such_library"))
    with pytest.raises(MakeError) as raised:
        make.make_environment("tiny", Told())
    assert str(raised.value) == (
        "tiny: made, but it does not work: ModuleNotFoundError: No module named 'no_such_library'"
    )


def test_a_missing_python_version_is_reported(with_rows: Callable[..., None]) -> None:
    with_rows(replace(TINY, python="2.6"))
    with pytest.raises(MakeError, match=r"Python 2\.6 is not on this machine"):
        make.make_environment("tiny", Told())


def test_an_environment_on_top_of_another_has_its_modules(with_rows: Callable[..., None]) -> None:
    above = replace(TINY, name="above", base="tiny", imports=("below",))
    with_rows(TINY, above)
    told = Told()
    base = make.make_environment("tiny", told)
    site = next(base.interpreter.parent.parent.glob("lib/python*/site-packages"))
    (site / "below.py").write_text("__version__ = '7'\n")
    made = make.make_environment("above", told)
    assert made.says == "below 7"
    (site / "below.py").unlink()
    assert isinstance(find.find_environment("above"), MissingEnvironment)


# Its proof is the last step. If it is told to, it reports that and waits until its starter has ended.
PROVED_SLOWLY = replace(
    TINY, proof="import os, pathlib\nif at := os.environ.get('PROVING'): pathlib.Path(at).touch(); sys.stdin.read()"
)
MAKER = """
from localcloud.environments import find, make
from tests.support.environments import Told
from tests.flows.test_environments_whole import PROVED_SLOWLY
find.environment_rows = make.environment_rows = lambda: {"tiny": PROVED_SLOWLY}
told = Told()
make.make_environment("tiny", told)
print(told.times_made)
"""


def maker(tmp_path: Path, **variables: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", MAKER],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": root, **variables},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_an_environment_is_made_again_after_a_kill(tmp_path: Path, with_rows: Callable[..., None]) -> None:
    with_rows(PROVED_SLOWLY)
    proving = tmp_path / "proving"
    with maker(tmp_path, PROVING=str(proving)) as first:
        eventually(proving.exists, bool, LONGEST_SECONDS)
        first.send_signal(signal.SIGKILL)
    assert isinstance(find.find_environment("tiny"), MissingEnvironment)
    assert isinstance(make.make_environment("tiny", Told()), Environment)


@pytest.mark.usefixtures("with_rows")
def test_two_concurrent_commands_make_an_environment_once(tmp_path: Path) -> None:
    with maker(tmp_path) as first, maker(tmp_path) as second:
        told = [process.communicate(timeout=LONGEST_SECONDS)[0].strip() for process in (first, second)]
    assert sorted(told) == ["0", "1"]


def test_a_command_that_fails_shows_its_last_lines() -> None:
    with pytest.raises(MakeError, match=r"ended with 3(?s:.)*line 40"):
        run_watched(
            [sys.executable, "-c", "for i in range(41): print('line', i)\nraise SystemExit(3)"], Told(), "counting"
        )


def test_an_interrupt_also_ends_the_started_command() -> None:
    class Impatient(Told):
        def update(self, text: str) -> None:
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_watched([sys.executable, "-c", "import time; time.sleep(600)"], Impatient(), "sleeping")
    assert time.monotonic() - began < LONGEST_SECONDS


def test_a_compilation_may_use_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `make test`, a nested `make` would see make's variables, and compile with one process only."""
    monkeypatch.setenv("MAKEFLAGS", " -j6 --jobserver-auth=3,4")
    seen = "import os, sys; sys.exit('MAKEFLAGS' in os.environ)"
    run_watched([sys.executable, "-c", seen], Told(), "looking")
