# SPDX-License-Identifier: Apache-2.0
"""A warning names data that a changed stack file would delete, from the outputs of the last `up`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs.conftest import Written
from tests.support.recorder.answers import NAMESPACE
from tests.support.recorder.client import ProgramError

EXAMPLE, BOTH = "oci-pytorch-ddp", "oci-or-openpai"
OWN = f"organization/trainyard/{EXAMPLE}"
BEFORE = {
    "bucket": "older",
    "imagePushAddress": f"iad.ocir.io/{NAMESPACE}/older/images",
    "logGroupId": "ocid1.loggroup.oc1.iad.older",
    "logId": "ocid1.log.oc1.iad.older",
    "projectId": "ocid1.datascienceproject.oc1.iad.older",
}


def warnings(changed: Written, before: dict[str, Any], **config: Any) -> list[str]:
    """The warnings for the example with these keys, if the last `up` had these outputs."""

    def change(written: dict[str, Any]) -> None:
        written.update({f"trainyard:{key}": value for key, value in config.items()})

    recording = changed(EXAMPLE, change, references={OWN: before})
    # Findings of `check` begin with the file's name.
    return [warning for warning in recording.warnings if warning.startswith("trainyard:")]


def test_a_bucket_of_another_name_keeps_its_objects_or_stops_up(changed: Written) -> None:
    (kept,) = warnings(changed, {"bucket": "older"}, bucket={"name": "newer"})
    assert kept.startswith(
        "trainyard:bucket: the bucket `older` holds about 7 objects; they are not moved. It is protected"
    )
    assert "`bucket: { name: older }`" in kept
    (going,) = warnings(changed, {"bucket": "older"}, bucket={"name": "newer", "keep": False})
    assert "OCI refuses that while it holds anything, so `up` would fail at its end" in going


def test_images_and_logs_are_named_before_they_are_deleted(changed: Written) -> None:
    registry, logs = {"repository": "newer/images", "keep": False}, {"enabled": False}
    images, printed = warnings(
        changed, BEFORE | {"bucket": "same"}, bucket={"name": "same"}, registry=registry, logs=logs
    )
    assert "`older/images` holds 3 images; they are not moved. OCI deletes them with it" in images
    assert "the log `runs` is deleted, with everything that runs printed" in printed
    (kept,) = warnings(
        changed, {"imagePushAddress": BEFORE["imagePushAddress"]}, registry={"repository": "newer/images"}
    )
    assert "It is protected" in kept


def test_resources_of_others_get_no_warning(changed: Written) -> None:
    theirs = {key: value.replace("older", "theirs") for key, value in BEFORE.items()}
    assert warnings(changed, theirs, bucket={"name": "newer"}, logs={"enabled": False}) == []
    gone = {key: value.replace("older", "nowhere") for key, value in BEFORE.items()}
    assert warnings(changed, {"bucket": gone["bucket"]}, bucket={"name": "newer"}) == []
    assert warnings(changed, {}, bucket={"name": "newer"}) == []


def test_without_a_loss_there_is_no_warning(changed: Written) -> None:
    same = {"bucket": "same", "imagePushAddress": f"iad.ocir.io/{NAMESPACE}/same/images", "logId": BEFORE["logId"]}
    assert warnings(changed, BEFORE | same, bucket={"name": "same"}, registry={"repository": "same/images"}) == []


def test_a_stack_does_not_move_to_another_region(changed: Written) -> None:
    def moved(config: dict[str, Any]) -> None:
        config["oci:region"] = "eu-frankfurt-1"

    with pytest.raises(ProgramError) as refused:
        changed(EXAMPLE, moved, references={OWN: BEFORE})
    assert "oci:region: the stack is in us-ashburn-1, and OCI cannot move it to another region" in str(refused.value)


@pytest.mark.parametrize(
    ("platform", "before", "there"),
    [
        ("oci", {"virtualCluster": "default", "jobs": {}}, "openpai"),
        ("oci", {"securityGroupId": "sg-1", "subnetId": "subnet-1"}, "aws"),
        ("openpai", BEFORE, "oci"),
    ],
)
def test_a_stack_does_not_move_to_another_platform(
    changed: Written, platform: str, before: dict[str, Any], there: str
) -> None:
    """Pulumi would end the runs on the old platform, and stop at the protected bucket: the stack would be on both
    platforms.
    """

    def change(config: dict[str, Any]) -> None:
        config["trainyard:platform"] = platform

    with pytest.raises(ProgramError) as refused:
        changed(BOTH, change, references={f"organization/trainyard/{BOTH}": before})
    assert f"trainyard:platform: the stack is up on `{there}`, and cannot move to `{platform}`" in str(refused.value)
