# SPDX-License-Identifier: Apache-2.0
"""Container images: whether an OCI node can pull them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from components.oci.checks.registry import rule
from components.oci.stack import OciStack
from schemas.checks.images import OURS, images_of, path_of
from schemas.checks.registry import Wrong
from schemas.facts import Facts

_OCIR = re.compile(r"(?P<key>[a-z0-9-]+)\.ocir\.io|ocir\.(?P<region>[a-z0-9-]+)\.oci\.[a-z0-9.-]+")


@rule("TY303", "an image the nodes cannot pull")
def elsewhere(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if "${" in image.name or "://" in image.text or _OCIR.fullmatch(image.host):
            continue
        message = f"`{image.text}` is not in OCI's registry, and job runs pull only from there"
        yield Wrong(path_of(image), message, f"push it to the stack's repository and write `{OURS}:<tag>`")


@rule("TY305", "an image of another region")
def other_region(stack: OciStack, facts: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        match = _OCIR.fullmatch(image.host)
        if match is None or stack.region not in facts.regions:
            continue
        ours = facts.regions[stack.region]
        theirs = match["key"] or facts.regions.get(match["region"], "")
        if theirs and theirs not in (ours, stack.region):
            message = f"`{image.host}` is not the registry of {stack.region}, which is {ours}.ocir.io"
            yield Wrong(path_of(image), message, f"push the image there and write `{OURS}:<tag>`")


@rule("TY306", "an image outside the stack's repository", severity="warning")
def other_repository(stack: OciStack, _: Facts) -> Iterator[Wrong]:
    ours = stack.repository_name
    for image in images_of(stack):
        if image.name.startswith(f"{OURS}/"):
            # Repositories do not nest: a longer path is another repository, which nobody makes.
            message = f"`{OURS}` is the repository `{ours}`, and `{image.name}` is another one, which is not made"
            tag = "-".join(filter(None, (image.name.rpartition("/")[2], image.tag)))
            yield Wrong(path_of(image), message, f"tell images apart by their tags: `{OURS}:{tag}`")
            continue
        if not _OCIR.fullmatch(image.host) or stack.access.mode == "proof-of-concept":
            continue
        repository = image.name.split("/", 2)[-1]
        if repository != ours:
            message = f"`{repository}` is not the stack's repository `{ours}`, the only one that the runs may read"
            remedy = f"write `{OURS}:<tag>`, or name this repository under `registry: {{ existing: … }}`"
            yield Wrong(path_of(image), message, remedy)
