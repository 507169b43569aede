# SPDX-License-Identifier: Apache-2.0
"""Which local environment a job gets: by framework, by what its code imports, and by what its requirements ask for."""

from __future__ import annotations

import pytest

from catalog.environments import Need, choose_environment, requirement_lines


def dask(*requirements: str, modules: str = "dask") -> str:
    return choose_environment(Need("dask", None, frozenset(modules.split()), requirements)).fitting[0].name


def pytorch(*requirements: str) -> str:
    return choose_environment(Need("pytorch", None, frozenset({"torch"}), requirements)).fitting[0].name


def test_a_requirement_chooses_the_release_of_the_framework() -> None:
    assert pytorch() == "pytorch", "the first row that fits"
    assert pytorch("torch>=2") == "pytorch"
    assert pytorch("torch==1.13.*") == "pytorch-1.13"
    assert pytorch("tqdm", "torch<2") == "pytorch-1.13"
    assert pytorch("numpy<2") == "pytorch-1.13"


def test_a_requirement_that_decides_is_named() -> None:
    choice = choose_environment(Need("pytorch", None, frozenset({"torch", "torchvision"}), ("tqdm", "pillow==10")))
    assert choice.decision == (
        "`pytorch-1.13`, not `pytorch`, which does not meet `pillow==10` (pillow 11.1.0); it has no `torchvision`"
    )
    assert not choose_environment(Need("pytorch", None, frozenset({"torch"}), ("torch>=2",))).decision
    assert not choose_environment(Need("pytorch", None, frozenset({"torch"}), ("torch==9",))).decision, (
        "no environment fits"
    )
    assert not choose_environment(Need("dask", None, frozenset({"dask", "pandas"}))).decision, "the code decided"


def test_what_no_release_meets_is_named_with_the_nearest() -> None:
    choice = choose_environment(Need("pytorch", None, frozenset({"torch"}), ("torch==2.3.1", "numpy>=2")))
    assert not choice.fitting
    assert choice.nearest
    assert choice.nearest.name == "pytorch"
    assert [(one.requirement, one.package, one.version) for one in choice.conflicts] == [
        ("torch==2.3.1", "torch", "2.6.0")
    ]


def test_a_marker_is_pip_s_to_judge() -> None:
    assert pytorch('torch==9 ; python_version < "3"') == "pytorch"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("tensorflow", "tensorflow-2.21"),
        ("tensorflow>=2.10", "tensorflow-2.21"),
        ("tensorflow<2.16", "tensorflow"),
        ("tensorflow-cpu==2.15.1", "tensorflow"),
        ("keras<3", "tensorflow"),
    ],
)
def test_the_framework_s_own_name_is_satisfied(line: str, name: str) -> None:
    assert choose_environment(Need("tensorflow", None, frozenset({"tensorflow"}), (line,))).fitting[0].name == name


def test_a_dask_job_gets_what_its_code_imports_whatever_else_it_asks_for() -> None:
    assert dask() == "own"
    assert dask("tqdm") == "own"
    assert dask("tqdm", modules="dask sklearn") == "dask-ml"
    assert dask(modules="dask pandas pyarrow") == "dask-dataframe"
    assert dask("dask[dataframe]") == "dask-dataframe"


def test_what_the_requirements_bring_need_not_be_in_the_environment() -> None:
    assert dask("scikit-learn", modules="dask sklearn") == "dask-ml", "it has it: nothing is downloaded"
    assert dask("scikit-learn==1.3.2", "lightgbm", modules="dask sklearn lightgbm") == "own"


def test_what_requirements_may_bring_by_another_name_refuses_nothing() -> None:
    choice = choose_environment(Need("dask", None, frozenset({"dask", "torch"}), ("something-with-torch",)))
    assert choice.fitting[0].name == "own"


def test_without_requirements_a_module_that_nobody_has_is_lacking() -> None:
    choice = choose_environment(Need("dask", None, frozenset({"lightgbm", "torch"})))
    assert (choice.fitting, choice.lacks) == ((), ("torch",))
    assert choice.nearest
    assert choice.nearest.name == "dask-ml"


def test_a_team_s_own_framework_takes_any_environment_with_its_modules() -> None:
    def chosen(module: str, team_own: bool) -> list[str]:
        return [
            row.name for row in choose_environment(Need("script", None, frozenset({module}), team_own=team_own)).fitting
        ]

    assert chosen("argparse", True)[0] == "own"
    assert chosen("torch", True)[0] == "pytorch"
    assert chosen("torch", False) == []


def test_what_pip_gets_is_read_without_its_options() -> None:
    text = "--only-binary :all:\n--require-hashes\ntorch>=2 --hash=sha256:00\ntqdm ; python_version > '3'\n"
    assert requirement_lines(text) == ("torch>=2", "tqdm ; python_version > '3'")
