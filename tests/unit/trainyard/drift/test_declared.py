# SPDX-License-Identifier: Apache-2.0
"""What a stack declared, by its state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.platform.review import SECRET
from trainyard.drift.declared import DriftError, export_state, of_export, of_local

SIGN = "4dabf18193072939515e22adb298388d"
URN = "urn:pulumi:demo::trainyard::"
RUN = {
    "type": "trainyard:index:Run", "urn": f"{URN}trainyard:oci:Job$trainyard:index:Run::line/base", "id": "run-1",
    "inputs": {"tags": {"stack": "demo", "job": "line", "run": "base"}}, "outputs": {"state": "SUCCEEDED"},
}  # fmt: skip


def exported(*rows: dict[str, Any]) -> str:
    return json.dumps({"deployment": {"resources": list(rows)}})


def row(name: str, **more: Any) -> dict[str, Any]:
    kind = "oci:Core/vcn:Vcn"
    return {"type": kind, "urn": f"{URN}{kind}::{name}", "id": f"ocid1.vcn.{name}", "inputs": {}, **more}


def test_a_state_gives_what_was_asked_for_with_ids_and_without_secrets() -> None:
    sealed = {SIGN: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:hush"}
    one = row("vcn", inputs={"key": sealed, "cidrBlocks": ["10.0.0.0/16"], "__defaults": []}, protect=True)
    declared = of_export(exported(one, RUN), "demo", "oci")
    vcn, _ = declared.snapshot.resources
    assert (vcn.name, vcn.id, vcn.protect) == ("vcn", "ocid1.vcn.vcn", True)
    assert vcn.inputs == {"key": SECRET, "cidrBlocks": ["10.0.0.0/16"]}
    assert declared.runs == {("line", "base"): "SUCCEEDED"}


def test_what_is_being_deleted_or_only_read_is_not_declared() -> None:
    text = exported(row("old", delete=True), row("theirs", external=True), row("vcn"))
    assert [one.name for one in of_export(text, "demo", "oci").snapshot.resources] == ["vcn"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"deployment": {"resources": 3}}', '{"deployment": null}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(DriftError, match="pulumi stack export"):
        of_export(text, "demo", "oci")


def test_the_state_of_another_stack_or_of_another_platform_is_no_state_of_this_one() -> None:
    """It would say that nothing has drifted, of a stack that nobody looked at."""
    with pytest.raises(DriftError, match="the state of the stack demo, not of other"):
        of_export(exported(row("vcn")), "other", "oci")
    root = {"type": "pulumi:pulumi:Stack", "urn": f"{URN}pulumi:pulumi:Stack::p-demo", "outputs": {"projectId": "one"}}
    assert of_export(exported(root, row("vcn")), "demo", "oci")
    with pytest.raises(DriftError, match="demo is up on `oci`, and its file says `openpai`"):
        of_export(exported(root, row("vcn")), "demo", "openpai")


def test_a_stack_that_is_not_up_has_nothing_to_compare(tmp_path: Path) -> None:
    with pytest.raises(DriftError, match="its state is empty"):
        of_export(exported(), "demo", "oci")
    with pytest.raises(DriftError, match="trainyard up demo --local"):
        of_local(tmp_path / "cloud", "demo", "oci")


def test_where_pulumi_cannot_tell_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DriftError, match="there is no `pulumi` on the PATH"):
        export_state("demo", tmp_path / "Pulumi.demo.yaml")
    (tmp_path / "Pulumi.yaml").write_text("name: x\n")
    pulumi = tmp_path / "pulumi"
    pulumi.write_text("#!/bin/sh\necho 'error: no stack named demo found' >&2\nexit 255\n")
    pulumi.chmod(0o755)
    with pytest.raises(DriftError, match="no stack named demo found"):
        export_state("demo", tmp_path / "Pulumi.demo.yaml")
    pulumi.write_text('#!/bin/sh\necho "$@"\n')
    assert export_state("demo", tmp_path / "Pulumi.demo.yaml") == "stack export --stack demo --non-interactive\n"
