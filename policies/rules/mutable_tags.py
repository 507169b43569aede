# SPDX-License-Identifier: Apache-2.0
"""If the image of a job is pushed again, a run that starts again runs other code, although the stack is unchanged."""

from __future__ import annotations

from collections.abc import Iterator

from policies.openpai_jobs import RUN
from policies.repositories import REPOSITORIES, is_in_repository, is_tag_immutable, repository_name
from policies.rule import (
    PASS,
    JudgedResource,
    JudgedStack,
    PolicyVerdict,
    StackRule,
    StackVerdict,
    Unknown,
    attempt_verdict,
    fail_because,
    unknown_because,
)

JOB = "oci:DataScience/job:Job"
REPOSITORY = "oci:Artifacts/containerRepository:ContainerRepository"
AWS_REPOSITORY = "aws:ecr/repository:Repository"
DIGEST = "@sha256:"
LATEST = "latest"


def judge_images(stack: JudgedStack) -> Iterator[StackVerdict]:
    """Judges each image once, at the first job that runs it."""
    judged: set[str] = set()
    for resource in stack.of(RUN, JOB):
        for image in _images_of_resource(resource):
            if isinstance(image, str) and image in judged:
                continue
            verdict = attempt_verdict(lambda name: judge_image(str(name), stack), image)
            reason = verdict.because or str(image)
            if reason not in judged:
                yield resource, verdict
            judged |= {reason, image} if isinstance(image, str) else {reason}


def judge_image(image: str, stack: JudgedStack) -> PolicyVerdict:
    if DIGEST in image:
        return PASS
    path, _, tag = image.rpartition(":") if ":" in image.rpartition("/")[2] else (image, "", LATEST)
    if tag == LATEST:
        return fail_because(f"`{image}` is another image whenever somebody pushes one")
    for repository in stack.of_types(REPOSITORIES):
        name = repository_name(repository)
        if is_in_repository(path, repository, stack):
            immutable = is_tag_immutable(tag, repository)
            return PASS if immutable else fail_because(f"`{image}` can be pushed again")
        if path == name or path.endswith(f"/{name}"):
            return fail_because(f"`{image}` is not of the stack's repository `{name}`, whose registry is another")
    return unknown_because(f"whether `{image}` can be pushed again: its repository is not in this stack")


def _images_of_resource(resource: JudgedResource) -> Iterator[object]:
    properties = resource.properties
    if resource.type == RUN:
        found = [properties.get("image")]
    else:
        details = properties.get("jobNodeConfigurationDetails") or {}
        groups = details.get("jobNodeGroupConfigurationDetailsLists") or ()
        environments = [part.get("jobEnvironmentConfigurationDetails") or {} for part in (properties, *groups)]
        found = [environment.get("image") for environment in environments]
    yield from (image for image in found if image is not None)


def _stack_with_image(image: object, *repositories: JudgedResource) -> JudgedStack:
    return JudgedStack((*repositories, JudgedResource(RUN, {"image": image}, "resnet/base")))


def _sample_repository(immutable: object) -> JudgedResource:
    return JudgedResource(REPOSITORY, {"displayName": "vision/dt", "isImmutable": immutable}, "repository")


IMAGE = "iad.ocir.io/axexamplens/vision/dt:1.4"
BY_DIGEST = f"iad.ocir.io/axexamplens/vision/dt:1.4{DIGEST}{'0' * 64}"

RULE = StackRule(
    id="mutable-tags",
    # Advisory, because a stack may choose it: people try images out under one tag.
    level="advisory",
    asks="The image of a job is the same whenever a run starts.",
    remedy="name the image by its digest, or set `trainyard:registry: { immutable: true }`",
    types=(RUN, JOB),
    judge=judge_images,
    passes={
        "by its digest": _stack_with_image(BY_DIGEST, _sample_repository(False)),
        "a tag of an immutable repository": _stack_with_image(IMAGE, _sample_repository(True)),
        "a tag of an immutable repository of AWS": _stack_with_image(
            "123456789012.dkr.ecr.us-east-1.amazonaws.com/vision/gaudi:1.15",
            JudgedResource(AWS_REPOSITORY, {"name": "vision/gaudi", "imageTagMutability": "IMMUTABLE"}, "repository"),
        ),
    },
    fails={
        "a tag of a repository that takes it again": _stack_with_image(IMAGE, _sample_repository(False)),
        "a repository that ends alike": _stack_with_image("docker.io/evil/vision/dt:1.4", _sample_repository(True)),
        "latest": _stack_with_image("nvcr.io/nvidia/pytorch:latest"),
        "no tag": _stack_with_image("localhost:5000/pytorch"),
        "a job's image": JudgedStack(
            (
                _sample_repository(False),
                JudgedResource(JOB, {"jobEnvironmentConfigurationDetails": {"image": IMAGE}}, "resnet"),
            )
        ),
        "a group's image": JudgedStack(
            (
                _sample_repository(None),
                JudgedResource(
                    JOB,
                    {
                        "jobNodeConfigurationDetails": {
                            "jobNodeGroupConfigurationDetailsLists": [
                                {"jobEnvironmentConfigurationDetails": {"image": IMAGE}}
                            ]
                        }
                    },
                    "resnet",
                ),
            )
        ),
    },
    unknown={
        "a repository that is not of this stack": _stack_with_image("nvcr.io/nvidia/pytorch:24.01-py3"),
        "an image decided elsewhere": _stack_with_image(Unknown("image")),
        "a repository decided elsewhere": _stack_with_image(IMAGE, _sample_repository(Unknown("isImmutable"))),
    },
)
