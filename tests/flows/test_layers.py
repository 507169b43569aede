# SPDX-License-Identifier: Apache-2.0
"""A job's packages over the environment of its framework, installed by the real pip. They are not trusted: none of
their code runs, no package of the framework is replaced, and a failure leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from localcloud.environments import cache, find, layers, make, watched_commands
from localcloud.environments.find import Environment, MissingEnvironment
from localcloud.environments.layers import LayerRequirements
from localcloud.environments.watched_commands import MakeError
from localcloud.hosts import images
from tests.support.environments import Told
from tests.support.package_shelf import MINI, Shelf, shelf, tiny_cache
from tests.support.waiting import eventually
from tests.support.wheels import digest, hostile_wheels, write_source, write_wheel
from trainyard.engine.isolated import isolated_python

LONGEST_SECONDS = 120.0

__all__ = ["shelf", "tiny_cache"]


def run(environment: Environment, script: str) -> str:
    done = subprocess.run([environment.interpreter, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_packages_are_installed_over_the_framework_without_reinstalling_it(shelf: Shelf) -> None:
    write_wheel(shelf.folder, "extra", "2.0", {"extra.py": "import mini\nWHERE = mini.__file__\n"}, ["mini>=1"])
    wheel = write_wheel(shelf.folder, "other", "3.0", {"other.py": ""})
    told = Told()
    made = shelf.make("extra==2.0", told=told)
    assert run(made, "import extra; print(extra.WHERE)").startswith(str(shelf.base.interpreter.parent.parent))
    assert shelf.make("extra==2.0", told=told) == made
    assert sum("installing the packages of req.txt" in text for text in told.said) == 1
    assert made.says.endswith("; extra 2.0")
    assert list(layers.usable_layers()) == [made.name]
    hashed = shelf.make(f"other==3.0 --hash={digest(wheel)}")
    assert hashed.name != made.name, "other packages are another layer"
    assert run(hashed, "import importlib.util as u; print(u.find_spec('extra'))") == "None"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("taker", r"req.txt: taker 1.0 brings a module `mini`, which belongs to mini 1.0 of the environment `tiny`"),
        ("mini==2.0", r"req.txt:1: `mini==2.0` does not fit mini 1.0, which the environment `tiny` has"),
        ("needs-newer", r"(?s)environment `tiny` has \(helper 1.0\).*needs-newer 1.0 depends on helper>=2"),
        ("source-only", r"(?s)no wheel for this Python.*name it under `build`.*source-only"),
        ("nowhere==1.0", r"(?s)no index that pip reaches has it.*nowhere==1.0"),
        (f"plain --hash=sha256:{'0' * 64}", "another hash than the file says"),
    ],
)
def test_unsatisfiable_requirements_give_the_reason_and_leave_nothing(shelf: Shelf, line: str, why: str) -> None:
    write_wheel(shelf.folder, "taker", "1.0", {"mini/__init__.py": "VERSION = 'taken'\n"})
    write_wheel(shelf.folder, "mini", "2.0", {"mini/__init__.py": "VERSION = 2\n"})
    write_wheel(shelf.folder, "helper", "2.0", {"helper/__init__.py": ""})
    write_wheel(shelf.folder, "needs_newer", "1.0", {"needs_newer.py": ""}, ["helper>=2"])
    write_wheel(shelf.folder, "plain", "1.0", {"plain.py": ""})
    write_source(shelf.folder, "source_only", "1.0", {"source_only.py": ""}, shelf.mark)
    with pytest.raises(MakeError, match=why) as raised:
        shelf.make(line)
    assert "packages.txt (line" not in str(raised.value), "the team's own lines are named"
    assert shelf.nothing_is_left(shelf.wanted(line))
    assert not shelf.mark.exists(), "no build script ran"


def test_the_framework_under_another_name_satisfies_a_requirement(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.add_to_base("tensorflow-cpu", "2.15.1", {"tensorflow/__init__.py": "VERSION = 'below'\n"})
    shelf.add_to_base("torch", "1.13.0a0+gitunknown", {"torch/__init__.py": "VERSION = 'below'\n"})
    write_wheel(shelf.folder, "tensorflow", "2.15.1", {"tensorflow/__init__.py": "VERSION = 'fetched'\n"})
    write_wheel(shelf.folder, "text", "1.0", {"text.py": ""}, ["tensorflow>=2.10", "torch>=1.13"])
    row = replace(
        MINI, offers=frozenset({"mini", "tensorflow", "torch"}),
        provides={"tensorflow-cpu": "2.15.1", "torch": "1.13.0"},
    )  # fmt: skip
    for place in (find, make, layers):
        monkeypatch.setattr(place, "environment_rows", lambda: {"tiny": row})
    made = shelf.make("tensorflow>=2.10", "torch>=1.13", "text")
    assert made.says.endswith("; text 1.0"), "nothing else was installed"
    assert run(made, "import tensorflow, torch; print(tensorflow.VERSION, torch.VERSION)") == "below below"
    versions = "from importlib.metadata import version; print(version('tensorflow'), version('torch'))"
    assert run(made, versions) == "2.15.1 1.13.0"
    with pytest.raises(MakeError, match=r"req.txt:1: `tensorflow<2` does not fit tensorflow 2.15.1"):
        shelf.make("tensorflow<2")


def test_a_dependency_without_a_wheel_is_named(shelf: Shelf) -> None:
    """If the dependency has several versions, pip reports a conflict. The message must not blame the environment's own
    packages.
    """
    for version in ("1.0", "2.0"):
        write_wheel(shelf.folder, "asker", version, {"asker.py": ""}, ["onlysource"])
    write_source(shelf.folder, "onlysource", "1.0", {"onlysource.py": ""}, shelf.mark)
    with pytest.raises(MakeError) as told:
        shelf.make("asker")
    assert str(told.value).startswith(
        "req.txt: `onlysource`, which asker needs, has no wheel for this Python\n"
        "If it has a source only, add the line `onlysource` and have it built: "
        "requirements: { file: …, build: [onlysource] }\n"
    )
    assert not shelf.mark.exists()
    made = shelf.make("asker", "onlysource", build="onlysource")
    assert "asker 2.0" in made.says


def test_a_conflict_between_two_packages_does_not_blame_the_environment(shelf: Shelf) -> None:
    write_wheel(shelf.folder, "one", "1.0", {"one.py": ""}, ["common<2"])
    write_wheel(shelf.folder, "two", "1.0", {"two.py": ""}, ["common>=2", "third"])
    for name, version in (("common", "1.0"), ("common", "2.0"), ("third", "1.0")):
        write_wheel(shelf.folder, name, version, {f"{name}.py": ""})
    with pytest.raises(MakeError, match=r"req\.txt: no versions of its packages fit one another"):
        shelf.make("one", "two")
    write_wheel(shelf.folder, "two", "2.0", {"two.py": ""}, ["common>=2"])
    with pytest.raises(MakeError, match=r"req\.txt: no versions of its packages fit one another"):
        shelf.make("two", "common<2")


def test_a_package_is_built_only_if_it_is_named(shelf: Shelf) -> None:
    write_source(shelf.folder, "source_only", "1.0", {"source_only.py": "IT = 'built'\n"}, shelf.mark)
    made = shelf.make("source-only", build="source-only")
    assert shelf.mark.exists()
    assert run(made, "import source_only; print(source_only.IT)") == "built"


def test_a_package_changes_neither_the_interpreter_nor_the_framework(shelf: Shelf) -> None:
    scripts = "rude-1.0.data/scripts/python"
    write_wheel(shelf.folder, "rude", "1.0", {"rude.py": "", "base.pth": "/root/.ssh/a/b\n", scripts: "#!/bin/sh\n"})
    made = shelf.make("rude")
    assert made.interpreter.is_symlink()
    assert run(made, "import mini, rude; print(mini.VERSION)") == "1"
    [base] = made.interpreter.parent.parent.glob("lib/python*/site-packages/base.pth")
    assert ".ssh" not in base.read_text()


def test_a_package_writes_no_program_outside_of_its_layer(shelf: Shelf) -> None:
    """pip made a program of each entry point, wherever its name led. More ways: tests/torture/test_borders_wheels.py"""
    program = shelf.folder.parent / "bin" / "git"
    program.parent.mkdir()
    hostile_wheels(str(program))["a script with a path upwards"].write(shelf.folder)
    with pytest.raises(MakeError, match=r"req\.txt: the package 'rude-1\.0-py3-none-any\.whl' is not installed"):
        shelf.make("rude")
    assert not program.exists()
    assert shelf.nothing_is_left(shelf.wanted("rude"))


def test_no_file_of_a_package_decides_what_is_mounted_into_nodes(shelf: Shelf) -> None:
    """A wheel may put files anywhere in the folder that it is unpacked into."""
    secret = shelf.folder.parent / "secret"
    (secret / "lib" / "python3" / "site-packages").mkdir(parents=True)
    (secret / "pyvenv.cfg").write_text(f"home = {secret}\n")
    texts = {
        "pyvenv.cfg": f"home = {secret}/bin\n", "packages.txt": "mini==9\n", "installed.txt": "mini==9\n",
        cache.STAMP: '{"python": "3", "versions": {"mini": "9"}, "modules": {}}', "bin/python3": "#!/bin/false\n",
        f"lib/{shelf.site.parent.name}/site-packages/base.pth": f"{secret}/lib/python3/site-packages\n",
    }  # fmt: skip
    files = {f"hostile-1.0.data/data/{name}": text for name, text in texts.items()}
    write_wheel(shelf.folder, "hostile", "1.0", {"hostile.py": "", **files})
    made = shelf.make("hostile")
    pairs = images.shown_programs(made.layout, made.variables)
    assert (str(made.interpreter.parent), str(made.interpreter.parent)) in pairs
    assert not [pair for pair in pairs if str(secret) in "".join(pair)]
    prefix = made.interpreter.parent.parent
    assert str(secret) not in (prefix / "pyvenv.cfg").read_text() + "".join(
        path.read_text() for path in prefix.glob("lib/python*/site-packages/base.pth")
    )
    assert find.requirements_of(shelf.wanted("hostile").digest) == ("hostile",)
    assert made.says.endswith("; hostile 1.0")


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("METADATA", "Name: oth\x1b[2Jer\nVersion: 1\n", r"invalid name or version, \('oth\\x1b\[2Jer', '1'\)"),
        ("RECORD", "", r"invalid name or version, \(None, None\)"),
    ],
)
def test_packages_with_invalid_metadata_are_refused(shelf: Shelf, file: str, text: str, reason: str) -> None:
    """Names and versions of packages are shown to people."""
    notes = f"rude-1.0.data/purelib/other-1.dist-info/{file}"
    write_wheel(shelf.folder, "rude", "1.0", {"rude.py": "", notes: text})
    with pytest.raises(MakeError, match=reason):
        shelf.make("rude")
    assert shelf.nothing_is_left(shelf.wanted("rude"))


def test_packages_that_would_fill_the_disk_are_refused(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(shelf.folder, "bomb", "1.0", {"bomb.py": ""})
    free = iter((800, 99))
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=next(free, 99)))
    with pytest.raises(MakeError, match=r"req\.txt: the disk is full"):
        shelf.make("bomb")
    assert shelf.nothing_is_left(shelf.wanted("bomb"))


def test_without_a_network_the_error_says_so(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed.getsockname()[1]}/simple")
        monkeypatch.setenv("PIP_RETRIES", "1")
        with pytest.raises(MakeError, match=r"req\.txt: pip reaches no package index"):
            shelf.make("absent")
    assert shelf.nothing_is_left(shelf.wanted("absent"))


def test_a_full_disk_leaves_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(shelf.folder, "large", "1.0", {"large.py": "#" * 3_000_000})
    # A limit of file sizes fails as a full disk does: in the middle of a file.
    limited = shelf.folder.parent / "limited"
    limited.write_text(f"#!/bin/bash\ntrap '' XFSZ\nulimit -f 1000\nexec {sys.executable} \"$@\"\n")
    limited.chmod(0o755)
    monkeypatch.setattr(watched_commands, "isolated_python", partial(isolated_python, python=limited))
    with pytest.raises(MakeError, match="large"):
        shelf.make("large")
    assert shelf.nothing_is_left(shelf.wanted("large"))


MAKER = """
import sys
from pathlib import Path
from localcloud.environments import find, layers, make
from localcloud.environments.layers import LayerRequirements
from tests.support.environments import Told
from tests.support.package_shelf import MINI
for module in (find, make, layers):
    module.environment_rows = lambda: {"tiny": MINI}
told = Told()
layers.make_layer(find.find_environment("tiny"), LayerRequirements(*sys.argv[1:]), told)
print(sum("installing the packages" in text for text in told.said))
"""


def maker(wanted: LayerRequirements, **variables: str) -> subprocess.Popen[str]:
    root = str(Path(__file__).resolve().parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", MAKER, wanted.text, wanted.digest, wanted.file],
        env={**os.environ, "PYTHONPATH": root, **variables}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_concurrent_commands_install_once(shelf: Shelf) -> None:
    write_wheel(shelf.folder, "extra", "2.0", {"extra.py": ""})
    wanted = shelf.wanted("extra")
    with maker(wanted) as first, maker(wanted) as second:
        told = [process.communicate(timeout=LONGEST_SECONDS)[0].strip() for process in (first, second)]
    assert sorted(told) == ["0", "1"]
    assert isinstance(find.find_environment(f"tiny+{wanted.digest}"), Environment)


def test_after_a_kill_the_next_command_waits_for_the_old_pip(shelf: Shelf) -> None:
    wanted = shelf.wanted("extra")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        with maker(wanted, PIP_NO_INDEX="0", PIP_INDEX_URL=address, PIP_RETRIES="0", PIP_DEFAULT_TIMEOUT="60") as first:
            asked, _ = silent.accept()
            first.send_signal(signal.SIGKILL)
        folder = find.layer_folder(shelf.base, wanted.digest)
        assert folder.exists()
        assert isinstance(find.find_environment(f"tiny+{wanted.digest}"), MissingEnvironment)
        write_wheel(shelf.folder, "extra", "2.0", {"extra.py": "IT = 'whole'\n"})
        with asked, maker(wanted) as second:
            eventually(lambda: _waits_for_a_lock(second.pid), bool, LONGEST_SECONDS)
            asked.close()
            silent.close()
            assert second.communicate(timeout=LONGEST_SECONDS)[0].strip() == "1"
    made = find.find_environment(f"tiny+{wanted.digest}")
    assert isinstance(made, Environment)
    assert run(made, "import extra; print(extra.IT)") == "whole"


def _waits_for_a_lock(pid: int) -> bool:
    """Whether a process waits for a lock, by its kernel wait channel: the list of locks leaves out those whose owner
    has ended."""
    return "lock" in Path(f"/proc/{pid}/wchan").read_text()
