# SPDX-License-Identifier: Apache-2.0
"""Both sides of a change, read from what the engine writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.platform.review import SECRET, UNKNOWN
from trainyard.review.preview import PreviewError, read_preview

VCN = "urn:pulumi:one::trainyard::oci:Core/vcn:Vcn::vcn"
SEALED = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:abc"}


def step(op: str, urn: str = VCN, old: Any = None, new: Any = None, **more: Any) -> dict[str, Any]:
    states = {}
    for key, inputs in (("oldState", old), ("newState", new)):
        if inputs is not None:
            states[key] = {"urn": urn, "type": urn.split("::")[-2], "custom": True, "inputs": inputs}
    return {"op": op, "urn": urn, **states, **more}


def written(folder: Path, *steps: dict[str, Any], **more: Any) -> Path:
    file = folder / "preview.json"
    file.write_text(json.dumps({"steps": steps, **more}))
    return file


def test_both_sides_and_the_engines_reasons(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        step("same", "urn:pulumi:one::trainyard::pulumi:pulumi:Stack::trainyard-one", {}, {}),
        step("replace", old={"cidr": "a"}, new={"cidr": "b"}, replaceReasons=["cidr"]),
        step("create-replacement", old={"cidr": "a"}, new={"cidr": "b"}),
        step("delete", f"{VCN}-old", old={}),
        step("create", f"{VCN}-new", new={"__defaults": [], "token": SEALED, "hidden": "[secret]"}),
        step("create", f"{VCN}-later", new={"id": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}),
        diagnostics=[{"severity": "warning", "message": "look"}, {"severity": "info", "message": "x"}],
    )
    seen = read_preview(file, "one", "oci", {"jobs": {}})
    assert [one.name for one in seen.before.resources] == ["vcn", "vcn-old"]
    assert {one.name: dict(one.inputs) for one in seen.after.resources} == {
        "vcn": {"cidr": "b"},
        "vcn-new": {"token": SECRET, "hidden": SECRET},
        "vcn-later": {"id": UNKNOWN},
    }
    assert seen.replaced == {VCN: ("cidr",)}
    assert seen.after.remarks == ("look",)
    assert seen.after.plan == {"jobs": {}}


def test_a_resource_changed_in_place_keeps_its_id(tmp_path: Path) -> None:
    """A resource that is changed in place keeps its id: a subnet names its security list, which gets another rule."""
    changed, replaced = (step(op, f"{VCN}-{op}", {"cidr": "a"}, {"cidr": "b"}) for op in ("update", "replace"))
    for one in (changed, replaced):
        one["oldState"]["id"] = "ocid1.vcn.a"
    seen = read_preview(written(tmp_path, changed, replaced), "one", "oci", {})
    assert [one.id for one in seen.before.resources] == ["ocid1.vcn.a", "ocid1.vcn.a"]
    assert {one.name: one.id for one in seen.after.resources} == {"vcn-update": "ocid1.vcn.a", "vcn-replace": ""}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"steps": 3}', "[" * 100_000])
def test_what_is_no_preview_is_refused_in_words(text: str, tmp_path: Path) -> None:
    file = tmp_path / "preview.json"
    file.write_text(text)
    with pytest.raises(PreviewError, match="pulumi preview --json"):
        read_preview(file, "one", "oci", {})


def test_a_preview_without_what_stays_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, step("create", new={}), changeSummary={"create": 1, "same": 12})
    with pytest.raises(PreviewError, match=r"12 resources that stay.*--show-sames"):
        read_preview(file, "one", "oci", {})


def test_a_preview_of_another_stack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PreviewError, match="of the stack one, not of two"):
        read_preview(written(tmp_path, step("create", new={})), "two", "oci", {})
