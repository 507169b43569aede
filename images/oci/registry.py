# SPDX-License-Identifier: Apache-2.0
"""What the registry is asked before a push, and what it means when one fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.oci.plan import oci_plan
from components.plan.model import Plan
from images.errors import ImageError
from images.oci.addresses import namespace_of, repository_of
from images.wanted import Wanted
from provider.base.errors import ProviderError
from provider.oci.session import Session


@dataclass(frozen=True)
class Standing:
    """What of an image is in the registry already."""

    repository: bool
    immutable: bool = False
    digest: str = ""


@dataclass(frozen=True)
class Meaning:
    """What a push's last words tell, and what to do; `{…}` are filled in."""

    pattern: str
    cause: str
    remedy: str


# The first that fits is told: OCIR answers an unknown caller with `denied` as well.
MEANINGS = (
    Meaning(
        r"anonymous|unauthori[sz]ed|authentication required|no basic auth|incorrect username",
        "{host} got no login, or did not accept it",
        "Log in, with an auth token as password (Console: your profile, Auth tokens): {login}\n"
        "A federated user is '{namespace}/oracleidentitycloudservice/<user>'",
    ),
    Meaning(
        r"immutable|cannot be overwritten|tag .*already exists",
        "the repository is immutable and has {tag} already",
        "Give the image a new tag in the stack file, then build and push that",
    ),
    Meaning(
        r"denied|forbidden|\b403\b",
        "the user who is logged in to {host} may not push to {repository}",
        "Pushing needs `manage repos` (REPOSITORY_UPDATE): `trainyard access {stack}` shows who has it",
    ),
    Meaning(
        r"name unknown|name_unknown|repository .*not found|\b404\b",
        "the repository {repository} does not exist",
        "Make it first: {make}",
    ),
    Meaning(
        r"no such image|not found in local storage|image not known|does not exist locally|unable to find image|"
        r"tag does not exist|no such file or directory|locating image",
        "{address} was not built on this machine",
        "Build it first: trainyard image build {stack}",
    ),
    Meaning(
        r"no such host|connection refused|timed? ?out|timeout|unreachable|name resolution|tls|certificate",
        "{host} cannot be reached",
        "Check the network, a proxy, and that the stack's region is the right one",
    ),
)  # fmt: skip


# The repository, and the components without which the engine makes none of the parts it is asked for.
_TARGETS = ("**::trainyard:oci:Access::access", "**::trainyard:oci:Storage::storage", "**::repository")
_WITHOUT = "To go on without asking OCI: --namespace NAME (Console: your profile, Tenancy, Object storage namespace)"


def failure(said: str, plan: Plan, image: Wanted, login: str) -> ImageError:
    """Why a push failed, from the words the tool ended with."""
    facts = {
        "host": image.host, "address": image.address, "repository": repository_of(image), "tag": image.tag,
        "namespace": namespace_of(image), "login": login, "stack": plan.stack, "make": make_words(plan),
    }  # fmt: skip
    last = said.casefold()
    for meaning in MEANINGS:
        if re.search(meaning.pattern, last):
            return ImageError(f"{meaning.cause}\n{meaning.remedy}".format(**facts))
    return ImageError("the push failed\nThe last lines above say why; the next try continues with what was pushed")


def make_words(plan: Plan) -> str:
    """How the repository of a stack comes to be, before anything else of it."""
    targets = " ".join(f"--target '{one}'" for one in _TARGETS)
    return f"pulumi up -s {plan.stack} {targets}"


def namespace(session: Session) -> str:
    """The tenancy's namespace, as the cloud tells it."""
    asked = _asked(lambda: session.client("object_storage").get_namespace().data)
    return str(asked)


def standing(session: Session, plan: Plan, image: Wanted) -> Standing | None:
    """What the registry has; None where nobody can tell: the repository belongs to another compartment."""
    place = oci_plan(plan).compartment
    if place is None:
        return None
    client = _asked(lambda: session.client("artifacts", plan.region))
    where = {"compartment_id": place}
    found = _asked(lambda: client.list_container_repositories(display_name=repository_of(image), **where).data.items)
    if not found:
        return Standing(False) if plan.registry.create and repository_of(image) == plan.registry.repository else None
    wanted = {"repository_id": found[0].id, "version": image.tag, **where}
    images = _asked(lambda: client.list_container_images(**wanted).data.items)
    if not images:
        return Standing(True)
    # The list leaves it out.
    immutable = _asked(lambda: client.get_container_repository(found[0].id).data.is_immutable)
    return Standing(True, bool(immutable), str(images[0].digest))


def judge(plan: Plan, image: Wanted, found: Standing, overwrite: bool) -> None:
    """Raises where a push would do harm or cannot work."""
    if not found.repository:
        # OCI would make one: in the root compartment, where the stack's own can then not be made.
        raise ImageError(f"the repository {repository_of(image)} does not exist yet\nMake it first: {make_words(plan)}")
    if found.digest and found.immutable:
        raise ImageError(
            f"{repository_of(image)} is immutable and has {image.tag} already ({found.digest})\n"
            "Give the image a new tag in the stack file, then build and push that"
        )
    if found.digest and not overwrite:
        raise ImageError(
            f"{repository_of(image)} has {image.tag} already ({found.digest}): later runs would get another image\n"
            "Give the image a new tag in the stack file, or add --overwrite"
        )


def _asked(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ProviderError as error:
        raise ImageError(f"{error.cause}\n{error.remedy}\n{_WITHOUT}") from None
    except Exception as error:
        # Told by its module, because importing the SDK for its exceptions would cost every command half a second.
        if type(error).__module__.partition(".")[0] not in ("oci", "requests", "urllib3"):
            raise
        why = getattr(error, "message", None) or error
        raise ImageError(f"OCI did not answer: {why}\nCheck the credentials and the network.\n{_WITHOUT}") from error
