# SPDX-License-Identifier: Apache-2.0
"""The parts of an environment that a node sees, when every file of it is hostile."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from localcloud.environments import cache, find, layout
from localcloud.environments.find import Environment, MissingEnvironment
from localcloud.hosts import folders, images
from localcloud.hosts.assignment import CannotStartError
from localcloud.hosts.images import environment_for

DIGEST = "0" * 16


@pytest.fixture
def secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like an environment and is not one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "secret"
    for name in ("bin", "lib/python3.11/site-packages", "ssl"):
        (folder / name).mkdir(parents=True)
    (folder / "ssl" / "key.pem").write_text("a secret")
    (folder / "pyvenv.cfg").write_text("a secret")
    return folder


def _layer(secret: Path) -> Environment:
    """A layer over this interpreter, as it would be if a package could write any file and any link."""
    base = find.find_environment("own")
    assert isinstance(base, Environment)
    folder = find.layer_folder(base, DIGEST)
    unpacked = folder / find.UNPACKED
    site = unpacked / "lib" / base.layout.sites[0].parent.name / "site-packages"
    for place in (unpacked / "bin", site):
        place.mkdir(parents=True)
    cache.write_stamp(folder, cache.Stamp("3", {"evil": "1.0"}, {}))
    (unpacked / "bin" / "python").symlink_to(sys.executable)
    (unpacked / "bin" / "python3").symlink_to(secret / "bin" / "python")
    (unpacked / "pyvenv.cfg").write_text(f"home = {secret}/bin\n")
    (site / "base.pth").write_text(f"{secret}/lib/python3.11/site-packages\n")
    for name in ("lib64", "ssl", "libexec"):
        (unpacked / name).symlink_to(secret / "ssl")
    made = find.find_environment(f"own+{DIGEST}")
    assert isinstance(made, Environment)
    return made


def test_no_file_of_an_environment_decides_which_files_are_shown(secret: Path, tmp_path: Path) -> None:
    layer = _layer(secret)
    pairs = images.shown_programs(layer.layout, layer.variables)
    assert not [pair for pair in pairs if str(secret) in "".join(pair)]
    assert (str(layer.interpreter.parent), str(layer.interpreter.parent)) in pairs
    base = find.find_environment("own")
    assert isinstance(base, Environment)
    assert set(images.shown_programs(base.layout, base.variables)) < set(pairs), "what it is made from is seen, too"
    images.write_python(tmp_path / "python", layer.interpreter, layer.layout, "/launcher")
    files = [path for kind in ("*.cfg", "*.pth") for path in (tmp_path / "python").rglob(kind)]
    written = "".join(path.read_text() for path in files)
    assert str(secret) not in written


def test_a_link_in_an_environment_is_shown_as_a_link(secret: Path) -> None:
    unpacked = _layer(secret).interpreter.parent.parent
    for name in ("lib64", "ssl"):
        held = folders.open_without_links(str(unpacked / name))
        assert os.readlink("", dir_fd=held) == str(secret / "ssl"), "it leads where the node has nothing"
        os.close(held)
    with pytest.raises(NotADirectoryError):
        folders.open_without_links(str(unpacked / "ssl" / "key.pem"))


def test_only_environments_and_interpreters_of_this_machine_are_shown(secret: Path) -> None:
    strange = layout.Layout((secret,), "", (), True)
    with pytest.raises(CannotStartError, match="neither an environment nor an interpreter of this machine"):
        images.shown_programs(strange, {})
    for path in ("relative", os.path.relpath(secret), str(Path.home()), str(Path.home().parent)):
        pairs = images.shown_programs(layout.Layout((), "", (), True), {"LD_LIBRARY_PATH": path})
        assert pairs == (), path
    named = images.shown_programs(layout.Layout((), "", (), True), {"SSL_CERT_FILE": str(secret / "pyvenv.cfg")})
    assert named == ((str(secret / "pyvenv.cfg"), str(secret / "pyvenv.cfg")),), "what the cloud's own user names is"


def test_a_cache_behind_a_link_is_shown_where_its_programs_look(
    secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _layer(secret).interpreter.parent
    (tmp_path / "linked").symlink_to(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "linked"))
    found = find.find_environment(f"own+{DIGEST}")
    assert isinstance(found, Environment)
    pairs = images.shown_programs(found.layout, found.variables)
    assert {target for source, target in pairs if source == str(made)} == {str(made), str(found.interpreter.parent)}


def test_an_environment_name_cannot_lead_to_another_folder(secret: Path, tmp_path: Path) -> None:
    """Users who push an image choose the name of the local environment."""
    own = find.find_environment("own")
    assert isinstance(own, Environment)
    _layer(secret)
    made = find.layer_folder(own, DIGEST)
    climbing = f"{DIGEST}{made.name.partition(DIGEST)[2]}/../../../../storage/x"
    planted = Path(os.path.normpath(find.layer_folder(own, climbing)))
    assert planted.parent == tmp_path / "storage"
    (planted / find.UNPACKED / "bin").mkdir(parents=True)
    (planted / find.UNPACKED / "bin" / "python").touch()
    (planted / cache.STAMP).write_text(json.dumps({"python": "3", "versions": {}, "modules": {}}))
    for name in (climbing, DIGEST.upper() + "G", "*", ""):
        assert isinstance(environment_for(f"own+{name}"), MissingEnvironment)
        assert find.requirements_of(name) == ()
