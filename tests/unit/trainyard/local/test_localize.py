# SPDX-License-Identifier: Apache-2.0
"""The changes of a stack file for the local cloud, each with a remark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.oci.local.stacks import stand_in
from components.oci.local.stand_ins import KINDS
from components.platform.local import LocalFile
from localcloud.control import Cloud
from localcloud.environments.make import Obstacle
from tests.support.examples import EXAMPLES, STACKS, plan, stack_file
from trainyard.local import environments
from trainyard.local.localize import localize_config, waited_for_again

CLOUD = Cloud(
    Path("cloud"), 1, "http://127.0.0.1:1", "ocid1.tenancy.oc1..local", "ocid1.compartment.oc1..local", "ns",
    "us-ashburn-1",
)  # fmt: skip


class Made:
    """Replaces a cloud, and records the calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def of(self, ocid: str) -> str | None:
        kind = ocid.split(".")[1] if ocid.startswith("ocid1.") else ""
        self.asked.append(kind)
        return f"ocid1.{kind}.oc1.iad.local" if kind in (*KINDS, "tenancy", "compartment") else None

    def named(self, kind: str, name: str, group: str = "") -> bool:
        self.asked.append(f"{kind} {name} {group}".strip())
        return name != "here"

    def bucket(self, name: str) -> bool:
        self.asked.append(f"bucket {name}")
        return name != "here"

    def repository(self, name: str) -> None:
        self.asked.append(f"repository {name}")


def written(name: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(stack_file(name).read_text())["config"]
    return config


def local(name: str, **changes: Any) -> tuple[Any, Made]:
    made = Made()
    config = {**written(name), **{key.replace("__", ":"): value for key, value in changes.items()}}
    return made_local(name, config, made), made


def made_local(name: str, config: dict[str, Any], made: Made) -> LocalFile:
    return localize_config(config, plan(name), lambda file: stand_in(file, plan(name), CLOUD, made), STACKS)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_file_itself_is_never_changed(name: str) -> None:
    before = written(name)
    given = written(name)
    made_local(name, given, Made())
    assert given == before


def test_of_the_stack_local_only_the_place_changes() -> None:
    found, _ = local("local")
    assert found.remarks == []
    assert found.secrets == {}
    assert found.config["trainyard:jobs"] == written("local")["trainyard:jobs"]
    assert found.config["trainyard:compartment"] == "ocid1.compartment.oc1.iad.local"


def test_what_exists_elsewhere_gets_stand_ins() -> None:
    found, made = local("oci-existing")
    assert {"bucket risk-models", "repository risk/images"} <= set(made.asked)
    assert found.config["trainyard:network"]["subnet"] == "ocid1.subnet.oc1.iad.local"
    assert found.config["trainyard:logs"]["existing"]["log"] == "ocid1.log.oc1.iad.local"
    assert [line for line in found.remarks if "empty ones stand in" in line]


def test_stand_ins_are_made_after_those_that_contain_them() -> None:
    _, made = local("oci-existing-vcn")
    kinds = [kind for kind in made.asked if kind in KINDS]
    assert kinds.index("vcn") < kinds.index("routetable")


def test_groups_of_another_domain_are_made_in_the_only_one() -> None:
    found, _ = local("oci-existing-vcn")
    assert "domain" not in found.config["trainyard:access"]
    assert any("identity domain Engineering" in line for line in found.remarks)


def test_another_region_and_its_credentials_stay_behind() -> None:
    found, _ = local("local", oci__region="eu-frankfurt-1", oci__privateKeyPath="/home/me/key.pem")
    assert [key for key in found.config if key.startswith("oci:")] == ["oci:region"]
    assert found.config["oci:region"] == "us-ashburn-1"
    assert found.remarks == ["eu-frankfurt-1: the local cloud is one region, us-ashburn-1"]


def test_secrets_get_stand_ins_that_stay_the_same() -> None:
    sealed = {"secure": "v1:AAAA:BBBB"}
    vault = {"vault": "v", "key": "k", "secrets": {"git-token": sealed, "other": sealed}}
    found, _ = local("local", trainyard__vault=vault)
    assert list(found.secrets) == ['trainyard:vault["secrets"]["git-token"]', 'trainyard:vault["secrets"]["other"]']
    assert len(set(found.secrets.values())) == 2, "no two alike: what is mixed up would show"
    assert found.secrets == local("local", trainyard__vault=vault)[0].secrets
    assert "v1:AAAA" not in str(found.config)


def test_what_this_machine_cannot_train_is_only_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = Obstacle("dask-ml", "Python 3.9 is not on this machine", "install Python 3.9")
    monkeypatch.setattr(environments, "find_obstacle", lambda _: blocked)
    found, _ = local("oci-dask-lightgbm")
    runs = found.config["trainyard:jobs"]["lightgbm"]["runs"]
    assert {run["until"] for run in runs.values()} == {"accepted"}
    assert runs["deep"]["args"] == ["--leaves", "255"]
    (remark,) = [line for line in found.remarks if "waits only until its runs are accepted" in line]
    assert remark.startswith("job lightgbm is not trained on this machine")
    assert remark.endswith(
        "its environment `dask-ml` cannot be made on this machine: Python 3.9 is not on this machine (install "
        "Python 3.9)"
    )


def test_a_job_whose_environment_up_makes_is_unchanged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found, _ = local("oci-dask-lightgbm")
    assert found.config["trainyard:jobs"] == written("oci-dask-lightgbm")["trainyard:jobs"]


def test_code_that_lies_elsewhere_is_not_trained_here() -> None:
    job = plan("oci-dask-ml").jobs["clusters"]
    assert environments.why_untrained(job, STACKS) == "its code comes from git"
    assert environments.why_untrained(replace(job, code=None), STACKS) == "its code is in its image"


def test_the_organization_of_a_used_stack_is_that_of_the_local_backend() -> None:
    uses = {"stack": "acme/trainyard/oci-platform", "take": ["network"]}
    found, _ = local("oci-team", trainyard__uses=uses)
    assert found.config["trainyard:uses"]["stack"] == "organization/trainyard/oci-platform"


def test_stand_ins_have_the_names_of_the_resources() -> None:
    found, made = local(
        "oci-existing",
        trainyard__network={"subnet": "nodes"},
        trainyard__logs={"existing": {"group": "here", "log": "runs"}},
    )
    assert made.asked.index("loggroup here") < made.asked.index("log runs here")
    assert "subnet nodes" in made.asked
    assert found.config["trainyard:network"]["subnet"] == "nodes", "the name is looked up, as in OCI"
    assert "subnet nodes: an empty one stands in" in found.remarks
    assert not [line for line in found.remarks if "log group here" in line], "it was there"


def test_a_bucket_of_others_that_a_job_mounts_is_there_too() -> None:
    made, asked = local("oci-dask-ml")
    assert "bucket research-measurements" in asked.asked
    assert "bucket research-measurements: an empty one stands in" in made.remarks


def test_a_job_that_up_waits_for_again_is_named() -> None:
    def config(**until: str | None) -> dict[str, object]:
        runs = {name: {"until": value} if value else None for name, value in until.items()}
        return {"trainyard:jobs": {"line": {"runs": runs}}}

    (remark,) = waited_for_again(config(first="accepted", second="accepted"), config(first=None, second="finished"))
    assert remark == "job line: `up` waits for its runs from now on, which the diff shows as a changed `until`"
    assert waited_for_again(config(first="accepted"), config(first="accepted")) == []
    assert waited_for_again(config(first="started"), config(first="finished")) == []
    assert waited_for_again({}, config(first=None)) == []
