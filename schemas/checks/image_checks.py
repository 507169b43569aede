# SPDX-License-Identifier: Apache-2.0
"""Checks of container images: whether the reference is valid, and whether it always names the same image. Also checks
of pip requirements."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from catalog.environments import Choice, Conflict, Need, choose_environment, requirement_lines, requirement_of
from catalog.imports import packages_of, provides_module
from catalog.tables import table
from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.model import Job, Stack
from schemas.requirements import PackageList

_IMAGE = re.compile(
    r"(?P<name>\$\{[A-Za-z.-]+\}(?:/[a-z0-9._${}/-]+)?|[A-Za-z0-9][A-Za-z0-9._:${}/-]*?)"
    r"(?::(?P<tag>[A-Za-z0-9_$][A-Za-z0-9_.${}-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_REFERENCE = re.compile(r"\$\{[^}]*\}")
OURS = "${registry}"
# The limit for one job. If more modules are missing, the team has not listed any.
MOST_MISSING = 20


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
    """Whether the repository has capitals, which registries refuse. A host may have some."""
    repository = _REFERENCE.sub("", image.name.partition("/")[2])
    return repository != repository.lower()


def image_path(image: Image) -> tuple[str | int, ...]:
    return at("jobs", image.job, "image")


@rule("TY301", "an image without tag or digest")
def untagged_image(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if image.tag is None and image.digest is None:
            message = f"`{image.text}` has neither a tag nor a digest, so it does not say which image runs"
            yield Wrong(image_path(image), message, f"add a tag: `{image.text}:1.0`")


@rule("TY302", "the tag `latest`", severity="warning")
def latest_tag(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        if image.tag == "latest" and image.digest is None:
            message = "`latest` is another image after each push, so runs cannot be repeated"
            remedy = "use a version as tag" + (", or a digest" if stack.takes_digests else "")
            yield Wrong(image_path(image), message, remedy)


@rule("TY304", "a malformed image")
def malformed_image(stack: Stack, _: Facts) -> Iterator[Wrong]:
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
            yield Wrong(image_path(image), message, "use a version as tag")


def _requirements_problems(code: str, stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name in stack.jobs:
        for problem in facts.packages[name].problems if name in facts.packages else ():
            if problem.code == code:
                place = f"{problem.file}:{problem.line}" if problem.line else problem.file
                message = f"{place}: {problem.message}" if problem.line else f"`{place}` {problem.message}"
                yield Wrong(at("jobs", name, "requirements"), message, problem.remedy)


@rule("TY840", "a requirements file that cannot be used")
def unreadable_requirements(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    yield from _requirements_problems("TY840", stack, facts)


@rule("TY841", "a line of a requirements file that is refused")
def refused_requirement(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    yield from _requirements_problems("TY841", stack, facts)


@rule("TY842", "only some packages of a requirements file have hashes")
def half_hashed_requirements(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    yield from _requirements_problems("TY842", stack, facts)


@rule("TY843", "a package to build that the requirements file does not name")
def unlisted_build(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    yield from _requirements_problems("TY843", stack, facts)


@rule("TY844", "requirements that the job's image does not get", severity="warning")
def existing_image(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for image in images_of(stack):
        listed = stack.jobs[image.job].requirements
        if listed and (image.digest or not (image.host or image.name.startswith(OURS))):
            message = f"`{image.text[:80]}` exists already: `{listed.file}` goes only into images that trainyard builds"
            remedy = f"write `image: {OURS}:TAG` and run `trainyard image build`, or make sure that the image has them"
            yield Wrong(at("jobs", image.job, "requirements"), message, remedy)


@rule("TY845", "a module that neither the framework nor the requirements bring", severity="warning")
def missing_module(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    ours = {image.job for image in images_of(stack) if image.name.startswith(OURS) and not image.digest}
    for name, job in stack.jobs.items():
        brought = _packages_brought(job, facts)
        if name not in ours or brought is None:
            continue
        listed = facts.packages[name].names if name in facts.packages else frozenset()
        certain = facts.scripts[name].certain if name in facts.scripts else ()
        foreign = [item for item in certain if item.module not in {*sys.stdlib_module_names, "__main__"}]
        missing = [item for item in foreign if not provides_module(brought | listed, item.module)]
        for file, module, line in ((item.file, item.module, item.line) for item in missing[:MOST_MISSING]):
            message = f"{file}:{line} imports `{module}`, which comes neither with {job.framework} nor with "
            message += f"`{job.requirements.file}`" if job.requirements else "`requirements`, which the job lacks"
            package, unnamed = packages_of(module)[0], facts.unnamed.get(name)
            if job.requirements:
                remedy = f"add the line `{package}` to `{job.requirements.file}`"
            elif unnamed is None:
                remedy = f"write `{package}` into requirements.txt beside the stack file, and add"
                remedy += " `requirements: ./requirements.txt`"
            else:
                remedy = f"add `requirements: {unnamed.file}` to the job"
                remedy += "" if package in unnamed.names else f", and the line `{package}` to that file"
            yield Wrong(at("jobs", name, "code"), message, remedy)


def _environment_choices(stack: Stack, facts: Facts) -> Iterator[tuple[str, Choice]]:
    """The local environment of each job whose requirements and code are known."""
    for name, job in stack.jobs.items():
        if name in facts.packages and job.code and job.code.folder:
            framework, lines = facts.framework(job), requirement_lines(facts.packages[name].text)
            modules, own = facts.modules.get(name, frozenset()), job.framework in facts.own_frameworks
            # In the same form as in trainyard/local/environments.py.
            yield (
                name,
                choose_environment(Need(job.framework, framework.strategy if framework else None, modules, lines, own)),
            )


@rule("TY846", "requirements that no local environment of a job meets together with its code", severity="warning")
def local_conflict(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, choice in _environment_choices(stack, facts):
        if not choice.nearest:
            continue
        for conflict in choice.conflicts:
            message = (
                f"{_conflict_place(conflict, facts.packages[name])}`{conflict.requirement}` does not fit {conflict.has}"
            )
            message += f" of the environment `{choice.nearest.name}`, which stands in for the image on this machine"
            remedy = (
                f"write `{conflict.package}` without a version, or one that fits. Only `up --local` and `rehearse` "
            )
            yield Wrong(at("jobs", name, "requirements"), message, f"{remedy}refuse it; an image may have it")
        requirements = stack.jobs[name].requirements
        if choice.decision and choice.lacks and requirements:
            lines = " and ".join(f"`{packages_of(module)[0]}`" for module in choice.lacks)
            remedy = f"add {lines} to `{requirements.file}`, or {_without_version(choice)}"
            yield Wrong(at("jobs", name, "requirements"), _decision_message(choice, facts.packages[name]), remedy)


@rule("TY847", "requirements that rule out the first local environment of a framework", severity="note")
def local_choice(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, choice in _environment_choices(stack, facts):
        if choice.decision and not choice.lacks:
            remedy = f"nothing, if you want that; otherwise {_without_version(choice)}"
            yield Wrong(at("jobs", name, "requirements"), _decision_message(choice, facts.packages[name]), remedy)


def _decision_message(choice: Choice, packages: PackageList) -> str:
    place = _conflict_place(choice.decisive[0], packages)
    return f"{place}the environment that stands in for the image on this machine is {choice.decision}"


def _without_version(choice: Choice) -> str:
    return f"write `{choice.decisive[0].package}` without a version"


def _conflict_place(conflict: Conflict, packages: PackageList) -> str:
    of_conflict = (line for line in packages.lines if requirement_of(line.text) == conflict.requirement)
    return next((f"{line.file}:{line.line}: " for line in of_conflict), "")


def _packages_brought(job: Job, facts: Facts) -> frozenset[str] | None:
    """The packages that come with a job's framework. None if they are not known: then nothing can be missing.

    A team's own framework has what the team put into its image. If the job has `requirements`, these list it.
    """
    if job.framework in facts.own_frameworks:
        return frozenset() if job.requirements else None
    framework = facts.framework(job)
    rows: Mapping[str, Collection[str]] = table("modules")["brings"]
    strategy = framework.strategy if framework else None
    packages = rows.get(f"{job.framework}/{strategy}", rows.get(job.framework))
    return None if packages is None else frozenset(packages)
