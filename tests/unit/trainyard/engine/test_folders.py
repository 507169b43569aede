# SPDX-License-Identifier: Apache-2.0
"""Which folders belong to the project that an engine was started for (tests/flows/test_other_accounts.py)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.other_account import STRANGER, needs_root
from trainyard.engine.folders import EngineCall, Folders, OtherFolderError, engine_call


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A team's repository and a release of trainyard (docs/your-repository.md), and folders of neither."""
    files = {
        "team/Pulumi.yaml": "main: ../trainyard\n"
        "runtime: { name: python, options: { virtualenv: ../trainyard/.venv } }\n"
        "plugins: { providers: [{ name: trainyard, path: ../trainyard/provider }], analyzers: [{ path: ../rules }] }\n"
        "packages: { random: random@1.0, parts: { source: ../parts }, more: ../more }\n",
        "team/stacks/Pulumi.dev.yaml": "{}",
        "trainyard/Pulumi.yaml": "main: .\nplugins: { providers: [{ name: trainyard, path: ./provider }] }\n",
        "trainyard/provider/PulumiPlugin.yaml": "runtime: { options: { virtualenv: ../.venv } }\n",
        "rules/PulumiPolicy.yaml": "runtime: python\n",
        "parts/PulumiPlugin.yaml": "runtime: python\npackages: { inner: ./inner }\n",
        "parts/inner/PulumiPlugin.yaml": "runtime: python\n",
        "more/PulumiPlugin.yaml": "runtime: python\n",
        "pack/PulumiPolicy.yaml": "runtime: python\n",
        "other/Pulumi.yaml": "name: other\n",
        "home/plugins/resource-x-v1/PulumiPlugin.yaml": "runtime: python\n",
        "home/policies/org/pack/1/PulumiPolicy.yaml": "runtime: python\n",
        "home/elsewhere/PulumiPlugin.yaml": "runtime: python\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _folders(place: Path, *words: str, started_in: str = "trainyard", engine_in: str = "team") -> Folders:
    call = EngineCall(place / engine_in, ("pulumi", "up", *words))
    return Folders(place / started_in, call, {"PULUMI_HOME": str(place / "home")})


def _refused(known: Folders, *paths: Path | str) -> Iterator[str]:
    for path in paths:
        try:
            known.require(str(path))
        except OtherFolderError:
            yield Path(path).name


PROJECTS = ("team", "trainyard", "trainyard/provider", "rules", "parts", "parts/inner", "more")
INSTALLED = ("home/plugins/resource-x-v1", "home/policies/org/pack/1")
OTHERS = ("pack", "other", "home/elsewhere", "home", "home/..", "team/stacks", "nowhere", "team/../other")


def test_a_project_has_the_folders_that_its_files_name(place: Path) -> None:
    known = _folders(place)
    assert not list(_refused(known, *(place / name for name in (*PROJECTS, *INSTALLED))))
    assert len(list(_refused(known, *(place / name for name in OTHERS)))) == len(OTHERS)
    known.require("", *(str(place / name) for name in PROJECTS))


@pytest.mark.parametrize(
    "words",
    [
        ("--policy-pack", "../pack"),
        ("--policy-pack={place}/pack",),
        ("package", "get-schema", "{place}/pack/"),
        ("{place}/link",),
    ],
)
def test_a_policy_pack_of_the_command_line_belongs_to_the_project(place: Path, words: tuple[str, ...]) -> None:
    (place / "link").symlink_to(place / "pack")
    known = _folders(place, *(word.format(place=place) for word in words))
    known.require(str(place / "pack"), str(place / "link"))
    assert list(_refused(known, place / "other")) == ["other"]


def test_a_folder_may_be_reached_by_another_path(place: Path) -> None:
    (place / "link").symlink_to(place / "trainyard")
    _folders(place).require(str(place / "link" / "provider"), str(place / "team" / ".." / "rules"))


def test_a_project_is_found_from_within(place: Path) -> None:
    _folders(place, engine_in="team/stacks").require(str(place / "team"), str(place / "rules"))


def test_files_are_read_again_for_each_request(place: Path) -> None:
    """`pulumi package add` writes into Pulumi.yaml and then runs what it added."""
    known = _folders(place)
    assert list(_refused(known, place / "pack")) == ["pack"]
    with (place / "trainyard" / "Pulumi.yaml").open("a") as project:
        project.write("packages: { pack: ../pack }\n")
    known.require(str(place / "pack"))


@pytest.mark.parametrize(
    "text", ["[", "- 1", "plugins: 7", "plugins: { providers: { path: x } }", "packages: [x]", "\0"]
)
def test_an_invalid_file_names_no_folders(place: Path, text: str) -> None:
    (place / "trainyard" / "Pulumi.yaml").write_text(text)
    known = _folders(place, engine_in="other")
    known.require(str(place / "trainyard"))
    assert list(_refused(known, place / "trainyard" / "provider")) == ["provider"]


def test_a_python_is_named_by_the_project(place: Path) -> None:
    known = _folders(place)
    known.require_python(str(place / "team"), {"virtualenv": "../trainyard/.venv", "toolchain": "pip"})
    known.require_python(str(place / "trainyard" / "provider"), {"virtualenv": "../.venv"})
    known.require_python(str(place / "rules"), {})
    for folder, named in (("team", "../other/.venv"), ("team", str(place / "trainyard/.venv")), ("rules", "venv")):
        with pytest.raises(OtherFolderError, match="virtual environment"):
            known.require_python(str(place / folder), {"virtualenv": named})


@needs_root
def test_without_proc_a_folder_of_the_own_account_is_accepted(place: Path) -> None:
    """macOS has no /proc, so the host cannot learn of a policy pack that the command line names by path."""
    os.chown(place / "other", STRANGER, STRANGER)
    known = Folders(place / "trainyard", None, {})
    known.require(str(place / "pack"))
    assert list(_refused(known, place / "other", place / "nowhere")) == ["other", "nowhere"]


def test_an_engine_says_how_it_was_started() -> None:
    call = engine_call(os.getpid(), {"PULUMI_OPTION_POLICY_PACK": "a,b", "OTHER": "c"})
    assert call is not None
    assert call.folder == Path.cwd()
    assert {"a", "b", "a,b"} <= set(call.words)
    assert "c" not in call.words
    assert engine_call(2**22 + 1, {}) is None
