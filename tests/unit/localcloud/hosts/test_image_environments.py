# SPDX-License-Identifier: Apache-2.0
"""An image stands for a local environment by name; without one, for this checkout's interpreter."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import sys
from collections.abc import Set
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from catalog.environments import Need
from components.openpai.job import PARAMETER
from components.plan.packed_code import pack_folder
from localcloud.environments.find import Environment, MissingEnvironment
from localcloud.environments.layout import interpreter_layout
from localcloud.hosts.assignment import CannotStartError
from localcloud.hosts.images import LocalEnvironment, NodePaths, base_variables, environment_for
from localcloud.oci.job_runs import run_resources
from localcloud.oci.job_runs.run_resources import stand_in_name
from localcloud.oci.tenancy_store import StateStore
from localcloud.openpai.hosts.stand_ins import choose_stand_in as openpai_stand_in_name
from localcloud.openpai.tasks import TaskAttempt


@pytest.mark.parametrize("name", ["", "own", "no-such-environment"])
def test_an_image_without_an_environment_runs_in_this_interpreter(name: str) -> None:
    found = environment_for(name)
    assert isinstance(found, LocalEnvironment)
    assert found.path.split(":")[0] == str(Path(sys.executable).parent)
    assert base_variables(found, NodePaths())["PATH"] == found.path


def test_a_missing_environment_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = environment_for("dask-ml")
    assert isinstance(found, MissingEnvironment)
    assert found.remedy == "trainyard environments make dask-ml"


def test_the_launch_document_chooses_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def wanted(modules: Set[str], **launch: object) -> str:
        return stand_in_name(cast("StateStore", None), "", json.dumps(launch), frozenset(modules))

    asked: list[tuple[object, ...]] = []

    def find_for(need: Need, packages: str) -> Environment:
        asked.append((need.framework, need.strategy, need.team_own, packages))
        return Environment(f"{need.framework}+{packages}", Path("/python"), "", interpreter_layout(Path("/python")))

    monkeypatch.setattr(run_resources, "find_environment_for", find_for)
    assert wanted({"torch"}, framework="pytorch", strategy=None, packages="a" * 16) == f"pytorch+{'a' * 16}"
    assert wanted(set(), framework="mine", packages="../../etc") == "mine+", "a digest, and nothing else"
    assert asked == [("pytorch", None, False, "a" * 16), ("mine", None, True, "")]
    for document in ("", "no JSON", "[]", "{}", '{"framework": {"a": 1}}', "[" * 100_000):
        assert stand_in_name(cast("StateStore", None), "", document, frozenset()) == ""


def test_a_run_without_a_fitting_environment_fails_with_the_remedy() -> None:
    document = json.dumps({"framework": "dask", "strategy": None})
    with pytest.raises(CannotStartError, match="no local environment offers dask with torch") as raised:
        stand_in_name(cast("StateStore", None), "", document, frozenset({"torch", "dask"}))
    assert "name the packages of torch in the job's `requirements:`" in str(raised.value)
    layer = json.dumps({"framework": "dask", "strategy": None, "packages": "0" * 16})
    with pytest.raises(CannotStartError, match=r"own\+0{16}: the packages .* environments make --stack STACK"):
        stand_in_name(cast("StateStore", None), "", layer, frozenset({"dask"}))


def test_an_openpai_task_gets_an_environment_with_its_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code = tmp_path / "code"
    code.mkdir()

    def chosen(script: str, parameter: str | None = None) -> str:
        (code / "train.py").write_text(script)
        protocol = {
            "extras": {"trainyard": {"framework": "dask", "strategy": None}},
            "parameters": {PARAMETER: pack_folder(code) if parameter is None else parameter},
            "taskRoles": {"main": {"dockerImage": "image"}},
            "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "dask:1"}],
        }
        attempt = SimpleNamespace(protocol=protocol, role="main", image=SimpleNamespace(uri="dask:1"))
        try:
            return openpai_stand_in_name(cast("TaskAttempt", attempt))
        except CannotStartError as refused:
            return str(refused)

    assert chosen("import dask, tqdm\n") == "own"
    assert "needs the local environment dask-ml: it has not been made" in chosen("import sklearn\n")
    for nonsense in ("", "no base64!", "QlpoOTFBWSZTWQ==", "QUFBQQ=="):
        assert chosen("import sklearn\n", nonsense) == "own", "anybody may write a job"
    twice = bz2.compress(gzip.compress(bz2.decompress(base64.b64decode(pack_folder(code)))))
    assert chosen("import sklearn\n", base64.b64encode(twice).decode()) == "own", "packed once more: no limit holds"
