# SPDX-License-Identifier: Apache-2.0
"""Checks of container images: is the reference valid, and will it name the same image tomorrow?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from schemas.checks.registry import Wrong, at, rule
from schemas.facts import Facts
from schemas.model import Stack

_IMAGE = re.compile(
    r"(?P<name>\$\{[A-Za-z.-]+\}(?:/[a-z0-9._${}/-]+)?|[A-Za-z0-9][A-Za-z0-9._:${}/-]*?)"
    r"(?::(?P<tag>[A-Za-z0-9_$][A-Za-z0-9_.${}-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_REFERENCE = re.compile(r"\$\{[^}]*\}")
OURS = "${registry}"


class Image(NamedTuple):
    job: str
    text: str
    name: str
    tag: str | None
    digest: str | None

    @property
    def host(self) -> str:
        return self.name.split("/", 1)[0] if "/" in self.name else ""


def images_of(stack: Stack) -> Iterator[Image]:
    for job, spec in stack.jobs.items():
        if match := _IMAGE.fullmatch(spec.image):
            yield Image(job, spec.image, match["name"], match["tag"], match["digest"])


def has_capitals(image: Image) -> bool:
    """Where registries allow none. A host may have some."""
    repository = _REFERENCE.sub("", image.name.partition("/")[2])
    return repository != repository.lower()


def path_of(image: Image) -> tuple[str | int, ...]:
    return at("jobs", image.job, "image")


@rule("TY301", "an image without tag or digest")
def untagged(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if image.tag is None and image.digest is None:
            message = f"`{image.text}` has neither a tag nor a digest, so it does not say which image runs"
            yield Wrong(path_of(image), message, f"add a tag: `{image.text}:1.0`")


@rule("TY302", "the tag `latest`", severity="warning")
def latest(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if image.tag == "latest" and image.digest is None:
            message = "`latest` is another image after each push, so runs cannot be repeated"
            remedy = "use a version as tag" + (", or a digest" if stack.takes_digests else "")
            yield Wrong(path_of(image), message, remedy)


@rule("TY304", "a malformed image")
def malformed(stack: Stack, _: Facts) -> Iterator[Wrong]:
    matching = {image.job: image for image in images_of(stack)}
    for name, job in stack.jobs.items():
        match = matching.get(name)
        path = at("jobs", name, "image")
        if match is None:
            message = f"`{job.image[:80]}` is not a valid image reference"
            digest = f" or `{OURS}@sha256:…`" if stack.takes_digests else ""
            yield Wrong(path, message, f"write it as `{OURS}:1.0`{digest}")
        elif "://" in job.image:
            bare = job.image.split("://", 1)[1]
            yield Wrong(path, f"`{job.image[:80]}` is a URL; an image reference has no scheme", f"write `{bare[:200]}`")
        elif has_capitals(match):
            message = f"`{match.name[:80]}` has capitals, which repository names must not have"
            yield Wrong(path, message, f"write `{match.name.lower()[:200]}`")


@rule("TY307", "a tag that cannot be pushed again", severity="warning")
def immutable_latest(stack: Stack, _: Facts) -> Iterator[Wrong]:
    if not stack.registry.immutable:
        return
    for image in images_of(stack):
        if image.tag == "latest":
            message = "the repository is immutable, so `latest` can be pushed only once"
            yield Wrong(path_of(image), message, "use a version as tag")
