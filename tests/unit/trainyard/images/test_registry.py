# SPDX-License-Identifier: Apache-2.0
"""The messages for a registry's responses, before a push and after a failed one."""

from __future__ import annotations

import pytest

from components.oci.client.registry import (
    PUSH_FAILURES,
    explain_failure,
    images_to_build_for_oci,
    require_possible_push,
)
from components.platform.images import ImageError, RegisteredImage
from schemas.model import Registry
from tests.support.samples import plan

LOGIN = "docker login iad.ocir.io --username 'acme/<user>' --password-stdin"
DIGEST = f"sha256:{'0' * 64}"
# The last words of docker, podman and buildah, and what they come to.
SAID = [
    ("denied: Anonymous users are only allowed read access on public repos", "got no login, or did not accept it"),
    ("unauthorized: authentication required", "docker login iad.ocir.io"),
    ('Error: authenticating creds for "iad.ocir.io": incorrect username or password', "oracleidentitycloudservice"),
    ("no basic auth credentials", "got no login, or did not accept it"),
    ("tag 1.0 cannot be overwritten because the repository is immutable", "immutable and has 1.0 already"),
    ("denied: requested access to the resource is denied", "`trainyard access vision-dev`"),
    ("Error: writing blob: initiating layer upload: received unexpected HTTP status: 403 Forbidden", "may not push"),
    ("name unknown: repository name not known to registry", "--target '**::repository'"),
    ("An image does not exist locally with the tag: iad.ocir.io/acme/vision/dt", "trainyard image build vision-dev"),
    ("Error: iad.ocir.io/acme/vision/dt:1.0: image not known", "was not built on this machine"),
    ("dial tcp: lookup iad.ocir.io: no such host", "cannot be reached"),
    ('Get "https://iad.ocir.io/v2/": dial tcp 192.0.2.1:443: i/o timeout', "cannot be reached"),
    ("something nobody has heard of", "The last lines above say why"),
]


def _told(said: str) -> str:
    made = plan(registry=Registry("vision/dt"))
    return str(explain_failure(said, made, images_to_build_for_oci(made, "acme")[0][0], LOGIN))


@pytest.mark.parametrize(("said", "told"), SAID)
def test_the_last_lines_of_a_push_get_a_cause_and_a_remedy(said: str, told: str) -> None:
    text = _told(f"Copying blob sha256:0f0f\n{said}\n")
    assert told in text
    assert "\n" in text
    assert "{" not in text


def test_every_cause_has_a_tested_message() -> None:
    told = [_told(said) for said, _ in SAID]
    for one in PUSH_FAILURES:
        start = one.cause.rpartition("}")[2]
        assert any(start in text for text in told), one.cause


@pytest.mark.parametrize(
    ("found", "overwrite", "refused"),
    [
        (RegisteredImage(True), False, ""),
        (RegisteredImage(True, immutable=True), False, ""),
        (RegisteredImage(False), True, "does not exist yet\nMake it first: pulumi up -s vision-dev"),
        (RegisteredImage(True, digest=DIGEST), False, "--overwrite"),
        (RegisteredImage(True, digest=DIGEST), True, ""),
        (RegisteredImage(True, immutable=True, digest=DIGEST), True, "new tag"),
    ],
)
def test_a_push_that_would_do_harm_is_refused(found: RegisteredImage, overwrite: bool, refused: str) -> None:
    made = plan()
    image = images_to_build_for_oci(made, "acme")[0][0]
    if not refused:
        require_possible_push(made, image, found, overwrite)
        return
    with pytest.raises(ImageError) as error:
        require_possible_push(made, image, found, overwrite)
    assert refused in str(error.value)
