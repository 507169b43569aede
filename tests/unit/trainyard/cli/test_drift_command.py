# SPDX-License-Identifier: Apache-2.0
"""`trainyard drift`: its exit codes, its lines and its JSON. What it finds is for tests/flows/drift."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trainyard.cli.main import main
from trainyard.drift import find_drift
from trainyard.drift.compare import Drift, Remark

STACK = "config:\n  trainyard:platform: oci\n  trainyard:compartment: ocid1.compartment.oc1..here\n"
VCN = "oci:Core/vcn:Vcn"
STATE = {"deployment": {"resources": [{"type": VCN, "urn": f"urn:pulumi:demo::p::{VCN}::vcn", "id": "ocid1.vcn"}]}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.demo.yaml").write_text(STACK)
    (tmp_path / "state.json").write_text(json.dumps(STATE))
    return tmp_path


def drift(folder: Path, *words: str) -> Result:
    done = CliRunner().invoke(main, ["drift", *words, "--stacks", str(folder)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def finds(monkeypatch: pytest.MonkeyPatch, *remarks: Remark, unread: tuple[str, ...] = ()) -> list[Any]:
    """Replaces the read of the cloud by this result. Returns the recorded questions."""
    asked: list[Any] = []

    def found(*arguments: Any) -> Drift:
        asked.append(arguments)
        return Drift("demo", "oci", remarks, unread)

    monkeypatch.setattr(find_drift, "find_drift", found)
    return asked


def test_an_untouched_stack_is_one_line_and_0(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = finds(monkeypatch)
    done = drift(folder, "demo", "--state", str(folder / "state.json"), "--known", "group a", "--profile", "me")
    assert (done.exit_code, done.output) == (0, "demo: no drift: its cloud has what the last `up` made\n")
    ((declared, question, known),) = asked
    assert [one.id for one in declared.snapshot.resources] == ["ocid1.vcn"]
    assert declared.snapshot.plan == {"compartment": "ocid1.compartment.oc1..here"}
    assert (question.profile, known) == ("me", ("group a",))


def test_drift_is_1_and_what_could_not_be_read_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, Remark("opens", "TCP 22"), Remark("undeclared", "rule x"), unread=("the policies: no right",))
    done = drift(folder, str(folder / "Pulumi.demo.yaml"), "--state", str(folder / "state.json"))
    assert done.exit_code == 1
    assert done.output.splitlines()[:3] == [
        "demo: 2 differences from what the last `up` made", "  opens    TCP 22", "  new      rule x",
    ]  # fmt: skip
    assert done.output.splitlines()[-1] == "  not read the policies: no right"


def test_a_part_that_could_not_be_read_is_no_proof_that_nothing_drifted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finds(monkeypatch, unread=("the policies: no right",))
    said = "demo: cannot tell: 1 part could not be read; no drift in the others\n  not read the policies: no right\n"
    command = ("demo", "--state", str(folder / "state.json"))
    done, accepted = drift(folder, *command), drift(folder, *command, "--partial")
    assert (done.exit_code, done.output) == (2, said)
    assert (accepted.exit_code, accepted.output) == (0, said)


def test_the_same_as_json(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, Remark("gone", "machine a", "urn::a"))
    done = drift(folder, "demo", "--state", str(folder / "state.json"), "--format", "json")
    remark = {"kind": "gone", "words": "machine a", "resource": "urn::a"}
    assert json.loads(done.output) == [
        {"stack": "demo", "platform": "oci", "drift": True, "remarks": [remark], "unread": []}
    ]


def test_names_from_a_cloud_do_not_control_the_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finds(monkeypatch, Remark("undeclared", "rule \x1b[2J\n::error::x ##[command]"))
    done = drift(folder, "demo", "--state", str(folder / "state.json"))
    assert "\x1b" not in done.output
    assert "\n::error" not in done.output
    assert "##[" not in done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which stack?"),
        (("dmo", "--state", "state.json"), "demo"),
        (("demo", "--state", "Pulumi.demo.yaml"), "this is not the state of a stack"),
        (("demo", "--state", "nothing.json"), "does not exist"),
        (("demo",), "--state FILE"),
    ],
)
def test_where_it_cannot_tell_it_is_2_and_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(folder))
    done = drift(folder, *words)
    assert done.exit_code == 2
    assert said in done.output


def test_a_cloud_that_does_not_run_is_no_drift(folder: Path, tmp_path: Path) -> None:
    """1 would say that something has drifted."""
    done = drift(folder, "demo", "--home", str(tmp_path / "nowhere"))
    assert (done.exit_code, "No local cloud runs" in done.output) == (2, True)
