# SPDX-License-Identifier: Apache-2.0
"""The images that a stack's jobs name: their addresses, which of them trainyard builds, and from what.

Recipes are rows of launcher/images/images.toml. A builder gets a folder.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from catalog.imports import other_package_names
from catalog.platforms import Capability, Lacks, find_capability, platforms_with
from components.plan.model import JobPlan, Plan, expand_references
from schemas.name_suggestions import suggest_name

_ADDRESS = re.compile(r"(?P<host>[^/]+)/(?P<repository>[^:@]+):(?P<tag>[^:@]+)")
PROJECT = Path(__file__).resolve().parents[2]
IMAGES = Path("launcher", "images")
OWN = "own"
# Lock files name wheels for one processor architecture.
PLATFORM = "linux/amd64"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".git", ".venv", ".mypy_cache", ".pytest_cache")
_TEAM = "team"
_ARGUMENT = re.compile(r"^ARG (\w+)", re.MULTILINE)
_PROXIES = ("ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Recipe:
    """A Dockerfile and its arguments. `lacks`: why the user has to name the base image; empty if there is one.
    `remark`: what the image cannot do on the machines of its job."""

    title: str
    dockerfile: Path
    arguments: Mapping[str, str]
    lacks: str = ""
    remark: str = ""

    @property
    def declared(self) -> list[str]:
        """The arguments that its Dockerfile declares, and those that every builder accepts."""
        text = (PROJECT / self.dockerfile).read_text("utf-8")
        return sorted({*_ARGUMENT.findall(text), *_PROXIES})


@dataclass(frozen=True)
class Additions:
    """What a team adds to the framework in its image. `packages`: from the jobs' `requirements`."""

    requirements: Path | None = None
    code: Path | None = None
    packages: str = ""

    @property
    def arguments(self) -> Mapping[str, str]:
        """The build arguments that say where they are in the build context."""
        return {} if self == Additions() else {"TEAM": _TEAM}


def recipe_of_framework(framework: str, strategy: str | None, gpu: bool) -> Recipe:
    """The recipe of a framework. A team's own framework gets the base image's recipe."""
    with (PROJECT / IMAGES / "images.toml").open("rb") as file:
        rows = tomllib.load(file)
    title = framework if framework in rows and framework != OWN else OWN
    row = rows[title]
    if "dockerfile" not in row:
        title = f"{title} with {strategy}"
        row = row[strategy]
    kind = "gpu" if gpu else "cpu"
    arguments: Mapping[str, str] = {**row.get("always", {}), **row.get(kind, {})}
    return Recipe(f"{title}, {kind}", IMAGES / row["dockerfile"] / "Dockerfile", arguments)


def make_context(folder: Path, additions: Additions) -> None:
    """Fills the build context."""
    shutil.copytree(PROJECT / "launcher", folder / "launcher", ignore=_LEFT_OUT)
    if not additions.arguments:
        return
    nothing = PROJECT / IMAGES / "nothing"
    (folder / _TEAM).mkdir()
    listed = folder / _TEAM / "requirements.txt"
    if additions.packages:
        listed.write_bytes(additions.packages.encode())
    else:
        shutil.copyfile(additions.requirements or nothing / "requirements.txt", listed)
    known_as = (f"{' '.join((name, *others))}\n" for name, others in other_package_names().items())
    (folder / _TEAM / "known_as.txt").write_text("".join(known_as), "utf-8")
    shutil.copytree(additions.code or nothing / "code", folder / _TEAM / "code", ignore=_LEFT_OUT)


class ImageError(Exception):
    """An expected failure. The text is for the user; its second line is the remedy."""


@dataclass(frozen=True)
class WantedImage:
    """One image, and the jobs that run in it."""

    address: str
    jobs: tuple[JobPlan, ...]

    @property
    def host(self) -> str:
        return self.address.partition("/")[0]

    @property
    def path(self) -> str:
        """Its name on the host: without host and tag."""
        return self.address.partition("/")[2].rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.address.rpartition(":")[2]


@dataclass(frozen=True)
class Endpoint:
    """The address at which tools reach the registry."""

    host: str
    plain_http: bool = False
    elsewhere: bool = False

    def address(self, image: str) -> str:
        """The image's address at this endpoint."""
        return f"{self.host}/{image.partition('/')[2]}" if self.elsewhere else image

    @property
    def url(self) -> str:
        return f"{'http' if self.plain_http else 'https'}://{self.host}"


class ImagePlatform(Protocol):
    def wanted_images(
        self, plan: Plan, namespace: str, registry: str, only: str | None, dry_run: bool
    ) -> tuple[list[WantedImage], list[str]]:
        """The images to build, and remarks on jobs whose images are not built.

        `namespace` and `registry` are the values that the user gave. A dry run makes no call.
        """

    def recipe(self, job: JobPlan, gpu: bool | None) -> Recipe:
        """The recipe of the job's image. `gpu`, unless None, overrules the job's shape."""

    def is_arm(self, shape: str) -> bool: ...

    def judge(self, plan: Plan, image: WantedImage, overwrite: bool) -> str:
        """Raises ImageError if a push would do harm or cannot work. Returns why this could not be checked, or ""."""

    def user_of(self, image: WantedImage) -> str:
        """The user name for a login by hand."""

    def by_hand(self, login: str) -> str:
        """How to log in by hand, for users without credentials here. `login`: the tool's login command."""

    def login(self, place: Endpoint) -> tuple[str, str]:
        """A user and a password for one push."""

    def explain_failure(self, output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
        """Why a push failed, from the tool's last lines."""


@dataclass(frozen=True, slots=True)
class PlatformImages(Capability):
    """Makes the interface to a platform's images, for a plan and an environment with endpoints and credentials."""

    place = "client.images.PLATFORM_IMAGES"
    make: Callable[[Plan, Mapping[str, str]], ImagePlatform]


def image_platform_of(plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
    """The images of the plan's platform. `environment` has the cloud's endpoints and the caller's credentials."""
    images = find_capability(plan.platform, PlatformImages)
    if isinstance(images, Lacks):
        others = " and ".join(platforms_with(PlatformImages))
        raise ImageError(f"{plan.stack} runs on {plan.platform}\nImages are built for stacks of {others} so far")
    return images.make(plan, environment)


def images_to_build(
    plan: Plan, names: Mapping[str, str], built_elsewhere: Callable[[JobPlan], str], only: str | None = None
) -> tuple[list[WantedImage], list[str]]:
    """The images to build, and remarks on the jobs whose images are not built here.

    `names` are the values of placeholders in addresses. `built_elsewhere` returns why a job's image is built by another
    tool, or "".
    """
    jobs_of: dict[str, list[JobPlan]] = {}
    remarks = []
    for job in _chosen_jobs(plan, only):
        address = expand_references(job.image, names)
        if remark := built_elsewhere(job) or _reason_not_to_build(job, address):
            remarks.append(remark)
        else:
            jobs_of.setdefault(address, []).append(job)
    return [WantedImage(address, tuple(jobs)) for address, jobs in jobs_of.items()], remarks


def _chosen_jobs(plan: Plan, only: str | None) -> list[JobPlan]:
    if only is None:
        if not plan.jobs:
            raise ImageError(f"{plan.stack} has no jobs\nAdd one under `trainyard:jobs` with the image it runs in")
        return list(plan.jobs.values())
    if only not in plan.jobs:
        raise ImageError(f"{plan.stack} has no job `{only}`\n{suggest_name(only, plan.jobs)}")
    return [plan.jobs[only]]


def _reason_not_to_build(job: JobPlan, address: str) -> str:
    """Why a job's image is not built here, or ""."""
    if "@sha256:" in address:
        return f"{job.name}: {address} is named by its digest, so it exists already and cannot be built"
    if not _ADDRESS.fullmatch(address):
        return f"{job.name}: {address} has no registry or no tag, so there is no place to push it to"
    return ""


@dataclass(frozen=True)
class RegisteredImage:
    """An image's tag and repository as they are in the registry."""

    repository: bool
    immutable: bool = False
    digest: str = ""


@dataclass(frozen=True)
class PushFailure:
    """One kind of failed push: the pattern in the tool's last lines, the cause, and the remedy. `{…}` are filled in."""

    pattern: str
    cause: str
    remedy: str


IMMUTABLE = PushFailure(
    r"immutable|cannot be overwritten|tag .*already exists",
    "the repository is immutable and has {tag} already",
    "Give the image a new tag in the stack file, then build and push that",
)
NO_REPOSITORY = PushFailure(
    r"name unknown|name_unknown|repository .*(?:not found|does not exist)|\b404\b",
    "the repository {repository} does not exist",
    "Make it first: {make}",
)
NOT_BUILT = PushFailure(
    r"no such image|not found in local storage|image not known|does not exist locally|unable to find image|"
    r"tag does not exist|no such file or directory|locating image",
    "{address} was not built on this machine",
    "Build it first: trainyard image build {stack}",
)
UNREACHABLE = PushFailure(
    r"no such host|connection refused|timed? ?out|timeout|unreachable|name resolution|tls|certificate",
    "{host} cannot be reached",
    "Check the network, a proxy, and that the stack's region is the right one",
)


def explain_failed_push(
    output: str, failures: Iterable[PushFailure], plan: Plan, image: WantedImage, **facts: str
) -> ImageError:
    """Why a push failed, from the tool's last lines. The first row whose pattern matches counts."""
    last = output.casefold()
    named = {"host": image.host, "address": image.address, "repository": image.path, "tag": image.tag}
    facts = {**named, "stack": plan.stack, **facts}
    for failure in failures:
        if re.search(failure.pattern, last):
            return ImageError(f"{failure.cause}\n{failure.remedy}".format(**facts))
    return ImageError("the push failed\nThe last lines above say why; the next push skips layers that have arrived")


def refuse_borrowed_registry(plan: Plan) -> None:
    """Raises ImageError if the registry is another stack's: its address is not in this stack's plan."""
    if "registry" in plan.taken:
        raise ImageError(
            f"{plan.stack} takes its registry from {plan.uses}\n"
            f'Name it: --registry "$(pulumi stack output imagePushAddress -s {plan.uses})"'
        )


def targeted_up(plan: Plan, targets: Iterable[str]) -> str:
    """The command that makes only these resources of a stack."""
    return f"pulumi up -s {plan.stack} {' '.join(f'--target {shlex.quote(one)}' for one in targets)}"


def require_harmless_push(name: str, tag: str, registered: RegisteredImage, overwrite: bool, make: str) -> None:
    """Raises ImageError if a push would do harm or cannot work. `name`: the repository. `make`: the command that makes
    it."""
    if not registered.repository:
        raise ImageError(f"the repository {name} does not exist yet\nMake it first: {make}")
    if registered.digest and registered.immutable:
        raise ImageError(
            f"{name} is immutable and has {tag} already ({registered.digest})\n"
            "Give the image a new tag in the stack file, then build and push that"
        )
    if registered.digest and not overwrite:
        raise ImageError(
            f"{name} has {tag} already ({registered.digest}): later runs would get another image\n"
            "Give the image a new tag in the stack file, or add --overwrite"
        )
