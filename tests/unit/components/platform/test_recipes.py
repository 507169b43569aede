# SPDX-License-Identifier: Apache-2.0
"""The recipes of images: every framework has one, the files that a Dockerfile copies exist, and versions are pinned."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.frameworks import framework_names, framework_row
from components.oci.client.registry import has_gpu, is_arm
from components.platform.images import IMAGES, PROJECT, Additions, Recipe, make_context, recipe_of_framework
from tests.support import dockerfiles

FOLDER = PROJECT / IMAGES
PINNED_IMAGE = re.compile(r"docker\.io/[a-z]+/[a-z]+:\d[\w.-]+")
PACKAGE = re.compile(r"[a-z0-9][a-z0-9.-]*==[\w.+!]+ (?:\\\n    )?--hash=sha256:[0-9a-f]{64}")


def _strategies(name: str) -> list[str | None]:
    return [None] if name == "own" else list(framework_row(name, None).strategies) or [None]


def _recipes() -> Iterator[Recipe]:
    for name in (*framework_names(), "own"):
        for strategy in _strategies(name):
            for gpu in (False, True):
                yield recipe_of_framework(name, strategy, gpu)


RECIPES = {one.title: one for one in _recipes()}


def _packages(lock: Path) -> str:
    return "\n".join(line for line in lock.read_text("utf-8").splitlines() if line and not line.startswith("#"))


@pytest.fixture(params=list(RECIPES.values()), ids=list(RECIPES))
def chosen(request: pytest.FixtureRequest) -> Recipe:
    found: Recipe = request.param
    return found


def test_every_framework_has_an_image_for_nodes_with_and_without_a_gpu() -> None:
    for name in framework_names():
        titles = [title for title in RECIPES if title.startswith(name)]
        assert {title.rpartition(", ")[2] for title in titles} == {"cpu", "gpu"}
        for title in titles:
            last = dockerfiles.read(PROJECT / RECIPES[title].dockerfile, RECIPES[title].arguments).stages[-1]
            assert f'trainyard.framework="{name}"' in last.all("LABEL")[0]
            # An image may hold the packages of another one.
            assert (PROJECT / last.known["REQUIREMENTS"]).is_file() or RECIPES[title].arguments["RUN_PACKAGES"]


def test_what_is_in_an_image_is_imported_when_it_is_built() -> None:
    for title, module in (("dask", "dask_ml"), ("pytorch", "torch.distributed"), ("tensorflow", "tensorflow")):
        one = RECIPES[f"{title}, cpu"]
        runs = dockerfiles.read(PROJECT / one.dockerfile, one.arguments).stages[-1].all("RUN")
        assert any(run.startswith('python -I -c "import launcher.start"') and module in run for run in runs)


def test_what_a_dockerfile_copies_is_in_its_context(chosen: Recipe, tmp_path: Path) -> None:
    make_context(tmp_path, Additions())
    for stage in dockerfiles.read(PROJECT / chosen.dockerfile, chosen.arguments).stages:
        for rest in stage.all("COPY"):
            words = rest.split()
            options = [word for word in words if word.startswith("--")]
            if not any(option.startswith("--from=") for option in options):
                for source in words[len(options) : -1]:
                    assert (tmp_path / source).exists(), source


def test_stages_are_there_before_something_is_copied_from_them(chosen: Recipe) -> None:
    known: list[str] = []
    for stage in dockerfiles.read(PROJECT / chosen.dockerfile, chosen.arguments).stages:
        for rest in stage.all("COPY"):
            if match := re.match(r"--from=(\S+)", rest):
                assert match[1] in known
        known.append(stage.name)


def test_a_row_gives_only_arguments_its_dockerfile_declares(chosen: Recipe) -> None:
    assert set(chosen.arguments) <= dockerfiles.read(PROJECT / chosen.dockerfile, chosen.arguments).declared


def test_base_images_are_pinned_to_a_version(chosen: Recipe) -> None:
    for stage in dockerfiles.read(PROJECT / chosen.dockerfile, chosen.arguments).stages:
        assert PINNED_IMAGE.fullmatch(stage.base), stage.base


def test_an_image_is_not_root_and_starts_the_launcher(chosen: Recipe) -> None:
    last = dockerfiles.read(PROJECT / chosen.dockerfile, chosen.arguments).stages[-1]
    assert last.all("USER") == ["1000:1000"]
    assert last.all("ENTRYPOINT") == ['["python", "-I", "-m", "launcher"]']
    assert "trainyard.framework=" in last.all("LABEL")[0]
    order = [one.word for one in last.instructions]
    assert "RUN" not in order[order.index("USER") :]


def test_packages_have_an_exact_version_and_a_hash(chosen: Recipe) -> None:
    known = dockerfiles.read(PROJECT / chosen.dockerfile, chosen.arguments).stages[-1].known
    listed = _packages(PROJECT / known["REQUIREMENTS"])
    assert PACKAGE.sub("", listed).strip() == ""


@pytest.mark.parametrize("wishes", sorted(FOLDER.glob("*/*.in")), ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_lock_holds_what_was_wished_for(wishes: Path) -> None:
    lock = _packages(wishes.with_suffix(".txt"))
    for wish in _packages(wishes).splitlines():
        name, equals, version = re.sub(r"\[.*\]", "", wish).partition("==")
        name = re.split(r"[<>]", name)[0]
        assert re.search(rf"^{re.escape(name)}=={re.escape(version) if equals else ''}", lock, re.MULTILINE), wish


def test_a_team_s_packages_find_horovod_installed() -> None:
    one = RECIPES["horovod with tensorflow, cpu"]
    runs = "\n".join(dockerfiles.read(PROJECT / one.dockerfile, one.arguments).stages[-1].all("RUN"))
    assert runs.index("wheels/*.whl") < runs.index("packages.sh")


def test_an_image_without_a_gpu_has_keras_2_and_no_second_tensorflow() -> None:
    one = RECIPES["tensorflow, cpu"]
    locked = {line.partition("==")[0] for line in (PROJECT / one.arguments["REQUIREMENTS"]).read_text().splitlines()}
    assert {"tensorflow-cpu", "tf-keras"} <= locked
    assert "tensorflow" not in locked
    assert "tf_keras" in one.arguments["MODULES"]


def test_no_file_names_an_index_or_a_registry_of_packages() -> None:
    for file in FOLDER.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert "://" not in file.read_text("utf-8"), file


@pytest.mark.parametrize("script", sorted(FOLDER.rglob("*.sh")), ids=lambda file: file.name)
def test_scripts_are_shell(script: Path) -> None:
    checked = subprocess.run(["sh", "-n", str(script)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_what_is_compiled_was_measured() -> None:
    source = _packages(FOLDER / "horovod" / "source.txt")
    assert PACKAGE.fullmatch(source)
    assert source.startswith("horovod==0.28.1 ")


def test_the_table_has_no_row_without_a_framework() -> None:
    rows = tomllib.loads((FOLDER / "images.toml").read_text("utf-8"))
    assert set(rows) == {*framework_names(), "own"}
    for name in framework_names():
        if "dockerfile" not in rows[name]:
            assert set(rows[name]) == set(_strategies(name))


def test_a_teams_own_framework_gets_the_base() -> None:
    assert recipe_of_framework("jax", None, False).dockerfile.parent.name == "base"
    assert recipe_of_framework("own", None, False) == recipe_of_framework("jax", None, False)


@pytest.mark.parametrize(
    ("shape", "gpu", "arm"),
    [
        ("VM.GPU.A10.1", True, False),
        ("VM.GPU2.1", True, False),
        ("BM.GPU.NEW.8", True, False),
        ("VM.Standard.E4.Flex", False, False),
        ("VM.Standard.A1.Flex", False, True),
        ("BM.GPU.GB200.4", True, True),
        ("VM.Unheard.Of", False, False),
    ],
)
def test_what_a_shape_has(shape: str, gpu: bool, arm: bool) -> None:
    assert (has_gpu(shape), is_arm(shape)) == (gpu, arm)


def test_a_context_holds_the_launcher_and_what_the_team_adds(tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "__pycache__").mkdir(parents=True)
    (code / "train.py").write_text("print(1)\n")
    wishes = tmp_path / "team.txt"
    wishes.write_text("einops==0.8.0\n")
    additions = Additions(wishes, code)
    context = tmp_path / "context"
    context.mkdir()
    make_context(context, additions)
    team = context / additions.arguments["TEAM"]
    assert (team / "requirements.txt").read_text() == "einops==0.8.0\n"
    named = (team / "known_as.txt").read_text().splitlines()
    assert {"tensorflow-cpu tensorflow", "tensorflow tensorflow-cpu"} <= set(named)
    assert [file.name for file in (team / "code").iterdir()] == ["train.py"]
    assert (context / "launcher" / "__main__.py").exists()
    assert not list(context.rglob("__pycache__"))
    assert Additions().arguments == {}
