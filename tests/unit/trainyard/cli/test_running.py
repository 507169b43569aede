# SPDX-License-Identifier: Apache-2.0
"""All commands use the same local cloud, wherever they are called from, and name the others in which a stack is up."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from localcloud import control
from trainyard.cli.main import main
from trainyard.engine import tools
from trainyard.local import local_stack, places


def _is_up(home: Path, stack: str) -> None:
    """Writes the state of a stack that is up, as plain `pulumi` leaves it: without a copy of the stack file."""
    states = home / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard"
    states.mkdir(parents=True)
    rows = [{"type": "oci:Core/vcn:Vcn", "urn": "urn:x::vcn", "custom": True, "id": "ocid1.vcn"}]
    (states / f"{stack}.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": rows}}}))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout, and a repository with a `.trainyard` of its own as current folder."""
    (own := tmp_path / "repository" / ".trainyard" / "cloud").mkdir(parents=True)
    monkeypatch.chdir(own.parents[1])
    monkeypatch.delenv("TRAINYARD_HOME", raising=False)
    monkeypatch.setattr(tools, "CHECKOUT", tmp_path / "checkout")
    monkeypatch.setattr(control, "running_homes", lambda: iter(()))
    monkeypatch.setattr(local_stack, "local_stack_environment", lambda home: {})
    return tmp_path / "checkout"


def test_every_command_uses_the_same_local_cloud(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rules once led `cloud start`, `up` and `runs` to different clouds."""
    for home, variable in ((checkout / ".trainyard", ""), (tmp_path / "third", str(tmp_path / "third"))):
        monkeypatch.setenv("TRAINYARD_HOME", variable)
        assert control.default_home() == home / "cloud"
        assert places.cloud_home(None) == home / "cloud"
        assert local_stack.local_stacks_home() == home
    assert places.cloud_home(tmp_path) == tmp_path, "it was named"


@pytest.mark.parametrize("words", [["down", "ads-prod"], ["drift", "ads-prod"], ["runs", "ads-prod"]])
def test_the_cloud_in_which_a_stack_is_up_is_named(words: list[str], checkout: Path, tmp_path: Path) -> None:
    """`down` once said `not up` of such a stack, and exited with 0."""
    repository = tmp_path / "repository"
    _is_up(repository / ".trainyard", "ads-prod")
    (repository / "Pulumi.ads-prod.yaml").write_text("config:\n  trainyard:team: ads\n")
    done = CliRunner().invoke(main, [*words, "--local"], env={"COLUMNS": "500"})
    assert done.exit_code != 0
    assert f"export TRAINYARD_HOME={repository / '.trainyard'}" in done.output, done.output


def test_a_cloud_that_runs_elsewhere_is_found_by_its_process(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "running_homes", lambda: iter([tmp_path / "elsewhere" / "cloud"]))
    _is_up(tmp_path / "elsewhere", "vision")
    assert list(places.other_clouds("vision", checkout / ".trainyard")) == [tmp_path / "elsewhere"]
    assert list(places.other_clouds("vision", tmp_path / "elsewhere")) == []
