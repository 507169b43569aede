# SPDX-License-Identifier: Apache-2.0
"""What is checked in the registry before a push, and why a push fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from components.oci.client.registry_addresses import namespace_of, repository_of
from components.oci.client.session import Session
from components.oci.plan import oci_plan
from components.plan.model import Plan
from components.platform import registered as registered_images
from components.platform.errors import ProviderError
from components.platform.image_errors import ImageError
from components.platform.images import WantedImage
from components.platform.registered import (
    IMMUTABLE,
    NO_REPOSITORY,
    NOT_BUILT,
    UNREACHABLE,
    PushFailure,
    RegisteredImage,
    explain,
)

# The first match counts: OCIR answers an unknown caller with `denied` as well.
PUSH_FAILURES = (
    PushFailure(
        r"anonymous|unauthori[sz]ed|authentication required|no basic auth|incorrect username",
        "{host} got no login, or did not accept it",
        "Log in, with an auth token as password (Console: your profile, Auth tokens): {login}\n"
        "A federated user is '{namespace}/oracleidentitycloudservice/<user>'",
    ),
    IMMUTABLE,
    PushFailure(
        r"denied|forbidden|\b403\b",
        "the user who is logged in to {host} may not push to {repository}",
        "Pushing needs `manage repos` (REPOSITORY_UPDATE): `trainyard access {stack}` shows who has it",
    ),
    NO_REPOSITORY,
    NOT_BUILT,
    UNREACHABLE,
)  # fmt: skip


# The repository and the components around it: the engine makes a targeted part only together with its parents.
_TARGETS = ("**::trainyard:oci:Access::access", "**::trainyard:oci:Storage::storage", "**::repository")
_WITHOUT = "To go on without asking OCI: --namespace NAME (Console: your profile, Tenancy, Object storage namespace)"


def explain_failure(output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
    """Why a push failed, from the last lines of the tool."""
    facts = {
        "host": image.host, "address": image.address, "repository": repository_of(image), "tag": image.tag,
        "namespace": namespace_of(image), "login": login, "stack": plan.stack, "make": make_words(plan),
    }  # fmt: skip
    return explain(output, PUSH_FAILURES, facts)


def make_words(plan: Plan) -> str:
    """The command that makes a stack's repository before the rest of the stack."""
    targets = " ".join(f"--target '{one}'" for one in _TARGETS)
    return f"pulumi up -s {plan.stack} {targets}"


def namespace(session: Session) -> str:
    """The tenancy's namespace, from OCI."""
    answer = _ask_oci(lambda: session.client("object_storage").get_namespace().data)
    return str(answer)


def look_up_image(session: Session, plan: Plan, image: WantedImage) -> RegisteredImage | None:
    """What the registry has. None if the repository may be in another compartment, where we cannot look."""
    place = oci_plan(plan).compartment
    if place is None:
        return None
    client = _ask_oci(lambda: session.client("artifacts", plan.region))
    where = {"compartment_id": place}
    repositories = _ask_oci(
        lambda: client.list_container_repositories(display_name=repository_of(image), **where).data.items
    )
    if not repositories:
        return (
            RegisteredImage(False)
            if plan.registry.create and repository_of(image) == plan.registry.repository
            else None
        )
    wanted = {"repository_id": repositories[0].id, "version": image.tag, **where}
    images = _ask_oci(lambda: client.list_container_images(**wanted).data.items)
    if not images:
        return RegisteredImage(True)
    # The list of repositories does not contain this field.
    immutable = _ask_oci(lambda: client.get_container_repository(repositories[0].id).data.is_immutable)
    return RegisteredImage(True, bool(immutable), str(images[0].digest))


def judge(plan: Plan, image: WantedImage, registered: RegisteredImage, overwrite: bool) -> None:
    """Raises where a push would do harm or cannot work.

    OCI would make a missing repository in the root compartment. The stack could then not make its own.
    """
    registered_images.judge(repository_of(image), image.tag, registered, overwrite, make_words(plan))


def _ask_oci(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ProviderError as error:
        raise ImageError(f"{error.cause}\n{error.remedy}\n{_WITHOUT}") from None
    except Exception as error:
        # Recognised by its module, because importing the SDK for its exceptions would cost every command half a second.
        if type(error).__module__.partition(".")[0] not in ("oci", "requests", "urllib3"):
            raise
        why = getattr(error, "message", None) or error
        raise ImageError(f"OCI did not answer: {why}\nCheck the credentials and the network.\n{_WITHOUT}") from error
