# SPDX-License-Identifier: Apache-2.0
"""What other stacks of the same backend declared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainyard.drift import other_stacks
from trainyard.drift.declared import DriftError
from trainyard.drift.other_stacks import exported_stack_states, local_stack_states

POLICY = "oci:Identity/policy:Policy"
ROW = {"type": POLICY, "urn": f"urn:pulumi:other::trainyard::{POLICY}::access", "id": "ocid1.policy", "custom": True}


def test_a_local_stack_is_known_by_the_state_beside_the_cloud(tmp_path: Path) -> None:
    folder = tmp_path / "pulumi" / "state" / ".pulumi" / "stacks" / "trainyard"
    folder.mkdir(parents=True)
    for stack, rows in (("other", [ROW]), ("empty", [])):
        (folder / f"{stack}.json").write_text(json.dumps({"checkpoint": {"latest": {"resources": rows}}}))
    state_of = local_stack_states(tmp_path / "cloud", "oci")
    other = state_of("other")
    assert other is not None
    assert [policy.id for policy in other.of(POLICY)] == ["ocid1.policy"]
    assert (state_of("empty"), state_of("third")) == (None, None)


def test_only_stacks_of_this_project_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def export(stack: str, file: Path) -> str:
        asked.append(stack)
        if stack == "third":
            raise DriftError("no stack named third")
        return json.dumps({"deployment": {"resources": [ROW]} if stack == "other" else None})

    monkeypatch.setattr(other_stacks, "export_state", export)
    state_of = exported_stack_states(Path("Pulumi.demo.yaml"), "oci")
    assert state_of("other") is not None
    for stack in ("empty", "third", "mallory/trainyard/other", "", "a b", "other"):
        assert (state_of(stack) is None) == (stack != "other")
    assert asked == ["other", "empty", "third"]
