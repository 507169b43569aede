# SPDX-License-Identifier: Apache-2.0
"""Checks of OCIR before a push, and explanations of failed pushes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from catalog.tables import table
from components.oci.client.calls import call_oci
from components.oci.client.session import Session, sdk_module
from components.oci.plan import oci_plan, registry_host
from components.plan.model import JobPlan, Plan
from components.platform import images as neutral
from components.platform.calls import Call, ProviderError
from components.platform.images import (
    IMMUTABLE,
    NO_REPOSITORY,
    NOT_BUILT,
    UNREACHABLE,
    Endpoint,
    ImageError,
    PushFailure,
    RegisteredImage,
    WantedImage,
    explain_failed_push,
)

# A dry run shows this in place of the namespace that was not looked up.
UNKNOWN_NAMESPACE = "<namespace>"
# The first match counts: OCIR's message for an unauthenticated caller also contains `denied`.
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


# The repository and its parent components: the engine makes a targeted resource only together with its parents.
_TARGETS = ("**::trainyard:oci:Access::access", "**::trainyard:oci:Storage::storage", "**::repository")
_WITHOUT = (
    "To continue without a call to OCI: --namespace NAME (Console: your profile, Tenancy, Object storage namespace)"
)
_ARM = (".A1.", ".A2.", ".A4.", ".GB200.", ".GB300.")
# OCIR's endpoint for tokens, and the user name that goes with a token.
TOKEN_PATH = "/20180419/docker/token"
TOKEN_USER = "BEARER_TOKEN"
_SECONDS = (10.0, 60.0)
_OCIR = re.compile(
    r"^(?P<host>(?:ocir\.(?P<region>[a-z0-9-]+)\.oci\.[a-z0-9.]+)|(?:(?P<key>[a-z0-9-]+)\.ocir\.io))"
    r"/(?P<namespace>[^/]+)/(?P<repository>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?$"
)


def namespace_of_image(image: WantedImage) -> str:
    return image.path.partition("/")[0]


def repository_of(image: WantedImage) -> str:
    """The repository's name in OCIR's lists: without host, namespace and tag."""
    return image.path.partition("/")[2]


def needs_namespace(plan: Plan, registry: str) -> bool:
    """Whether the image's address depends on the tenancy's namespace."""
    texts = [job.image for job in plan.jobs.values()]
    return any("${namespace}" in text or ("${registry}" in text and not registry) for text in texts)


def images_to_build_for_oci(
    plan: Plan, namespace: str, registry: str = "", only: str | None = None
) -> tuple[list[WantedImage], list[str]]:
    """The images to build, and the reason for each job without one. `registry`: the value of ${registry}, if given."""
    named = any("${registry}" in job.image for job in plan.jobs.values())
    if not registry and named:
        neutral.refuse_borrowed_registry(plan)
    registry = registry or f"{registry_host(plan.region)}/{namespace}/{plan.registry.repository}"
    return neutral.images_to_build(plan, {"namespace": namespace, "registry": registry}, built_with_ads, only)


def built_with_ads(job: JobPlan) -> str:
    """The reason not to build the image, if the job says that ADS built it with its own driver; or ""."""
    options: list[Mapping[str, object]] = [node.launch["options"] for run in job.runs.values() for node in run.nodes]
    if not any(one.get("adsDriver") for one in options):
        return ""
    return (
        f"{job.name}: its image is built with ADS (options: adsDriver), so there is nothing to build here; "
        "`ads opctl distributed-training build-image` and `publish-image` make it"
    )


def explain_failure(output: str, plan: Plan, image: WantedImage, login: str) -> ImageError:
    """The reason for a failed push, from the tool's last lines."""
    facts = {"repository": repository_of(image), "namespace": namespace_of_image(image), "login": login}
    return explain_failed_push(output, PUSH_FAILURES, plan, image, make=repository_command(plan), **facts)


def repository_command(plan: Plan) -> str:
    """The command that makes a stack's repository before the rest of the stack."""
    return neutral.targeted_up(plan, _TARGETS)


def tenancy_namespace(session: Session) -> str:
    """The tenancy's namespace, from OCI."""
    answer = _ask_oci(lambda: session.client("object_storage").get_namespace().data)
    return str(answer)


def look_up_image_in_ocir(session: Session, plan: Plan, image: WantedImage) -> RegisteredImage | None:
    """The image in the registry. None if the repository may be in a compartment where we cannot look."""
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


def require_possible_push(plan: Plan, image: WantedImage, registered: RegisteredImage, overwrite: bool) -> None:
    """Raises an error if a push would do harm or cannot work.

    OCI would make a missing repository in the root compartment. The stack could then not make its own.
    """
    neutral.require_harmless_push(repository_of(image), image.tag, registered, overwrite, repository_command(plan))


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


def has_gpu(shape: str) -> bool:
    """Whether a shape has GPUs. Also works for shapes that the table of shapes does not have."""
    return ".GPU" in shape or bool(table("shapes").get(shape, {}).get("accelerators"))


def is_arm(shape: str) -> bool:
    return any(part in f"{shape}." for part in _ARM)


def registry_token(session: Session, place: Endpoint) -> str:
    """A token for the registry, for the session's principal."""
    try:
        base = session.client("artifacts").base_client
    except ProviderError as error:
        raise ImageError(f"{error.cause}\n{error.remedy}") from None
    try:
        answer = base.session.get(f"{place.url}{TOKEN_PATH}", auth=base.signer, timeout=_SECONDS)
        token_text = answer.json().get("token", "") if answer.status_code == 200 else ""
    except (OSError, ValueError) as error:
        raise ImageError(f"{place.host} cannot be asked for a token: {error}\nCheck the network or the proxy") from None
    if not token_text:
        raise ImageError(
            f"{place.host} gave no token: it answered {answer.status_code}\nCheck that the API key is the tenancy's"
        )
    return str(token_text)


@dataclass(frozen=True)
class RegistryImage:
    address: str
    host: str
    region: str
    namespace: str
    repository: str
    tag: str | None
    digest: str | None


def parse_address(address: str) -> RegistryImage | None:
    """The parts of an address. None if it is not in an OCI registry, where we cannot look."""
    match = _OCIR.match(address)
    if match is None:
        return None
    region = match["region"] or match["key"]
    return RegistryImage(
        address, match["host"], region, match["namespace"], match["repository"], match["tag"], match["digest"]
    )


def require_image(session: Session, call: Call, address: str, compartment: str, access_minutes: float) -> None:
    image = parse_address(address)
    if image is None:
        return
    call.report.status(f"looking for the image {address}")
    if has_image_in_ocir(session, call, image, compartment, access_minutes):
        return
    client = session.client("object_storage")
    if image.namespace != str(call_oci(call, "Read the tenancy's namespace", client.get_namespace).data):
        call.report.warning(f"{address} is in another tenancy's registry, so it was not checked.")
        return
    tagged = address if image.tag or image.digest else f"{address}:latest"
    raise ProviderError(
        f"The image {address} is not in the registry, or you may not see it. No run was made.",
        f"Push it, then run the same command again:\n  docker login {image.host}\n  docker push {tagged}",
    )


def has_image_in_ocir(
    session: Session, call: Call, image: RegistryImage, compartment: str, access_minutes: float
) -> bool:
    """Looks in the run's compartment first, then in the whole tenancy: repositories may be shared."""
    wanted: dict[str, Any] = {"repository_name": image.repository, "limit": 1}
    if image.digest:
        wanted["image_digest"] = image.digest
    else:
        wanted["version"] = image.tag or "latest"
    regions = sdk_module("regions")
    region = regions.get_region_from_short_name(image.region) if "-" not in image.region else image.region
    # The SDK returns a region's key as it is if it does not know it: then the session's own region is asked.
    is_own = region in (session.credentials["region"], image.region.split("-")[0])
    client = session.client("artifacts", None if is_own else str(region))
    places: list[tuple[str, dict[str, bool]]] = [(compartment, {})]
    places.append((session.tenancy, {"compartment_id_in_subtree": True}))
    for place, depth in places:
        listing = call_oci(
            call,
            f"Look for the image {image.address}",
            partial(client.list_container_images, place, **wanted, **depth),
            access_minutes,
        )
        if any(item.lifecycle_state == "AVAILABLE" for item in listing.data.items):
            return True
    return False
