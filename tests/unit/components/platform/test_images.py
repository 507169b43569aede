# SPDX-License-Identifier: Apache-2.0
"""The images that are built and pushed for a stack, and the remarks on the others."""

from __future__ import annotations

from typing import Any

import pytest

from components.oci.client.registry import images_to_build_for_oci, needs_namespace, repository_of
from components.platform.images import ImageError
from schemas.model import Registry, Uses
from tests.support.samples import job, plan

DIGEST = f"sha256:{'0' * 64}"


def test_jobs_that_share_an_image_share_a_build() -> None:
    made = plan(jobs={"a": job(), "b": job(), "c": job(image="${registry}:2.0")}, registry=Registry("vision/dt"))
    images, remarks = images_to_build_for_oci(made, "acme")
    assert [(one.address, [each.name for each in one.jobs]) for one in images] == [
        ("iad.ocir.io/acme/vision/dt:1.0", ["a", "b"]),
        ("iad.ocir.io/acme/vision/dt:2.0", ["c"]),
    ]
    assert (images[0].host, repository_of(images[0]), images[0].tag) == ("iad.ocir.io", "vision/dt", "1.0")
    assert not remarks


def test_one_job_can_be_named() -> None:
    made = plan(jobs={"a": job(), "b": job(image="${registry}:2.0")})
    assert [one.tag for one in images_to_build_for_oci(made, "acme", only="b")[0]] == ["2.0"]
    with pytest.raises(ImageError, match="no job `bb`\ndid you mean `b`"):
        images_to_build_for_oci(plan(jobs={"b": job()}), "acme", only="bb")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"options": {"adsDriver": True}}, "built with ADS"),
        ({"image": f"${{registry}}@{DIGEST}"}, "named by its digest"),
        ({"image": "plain"}, "no registry or no tag"),
    ],
)
def test_what_is_not_ours_to_build_is_said(changes: dict[str, Any], said: str) -> None:
    images, remarks = images_to_build_for_oci(plan(jobs={"a": job(**changes), "b": job()}), "acme")
    assert [each.name for one in images for each in one.jobs] == ["b"]
    assert len(remarks) == 1
    assert remarks[0].startswith("a: ")
    assert said in remarks[0]


def test_the_registry_of_another_stack_has_to_be_told() -> None:
    made = plan(uses=Uses("company/trainyard/platform", ("registry",)))
    with pytest.raises(ImageError, match=r"takes its registry from company/trainyard/platform\n.*--registry"):
        images_to_build_for_oci(made, "acme")
    images, _ = images_to_build_for_oci(made, "", registry="fra.ocir.io/acme/shared")
    assert images[0].address == "fra.ocir.io/acme/shared:1.0"


def test_who_has_to_be_asked_for_the_namespace() -> None:
    full = plan(jobs={"a": job(image="iad.ocir.io/acme/vision/dt:1.0")})
    assert not needs_namespace(full, "")
    assert needs_namespace(plan(), "")
    assert not needs_namespace(plan(), "iad.ocir.io/acme/vision/dt")
    assert needs_namespace(plan(jobs={"a": job(image="iad.ocir.io/${namespace}/dt:1.0")}), "iad.ocir.io/acme/dt")


def test_a_stack_without_jobs() -> None:
    with pytest.raises(ImageError, match="has no jobs\nAdd one"):
        images_to_build_for_oci(plan(jobs={}), "acme")
