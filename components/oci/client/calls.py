# SPDX-License-Identifier: Apache-2.0
"""Calls of OCI's API: which errors are retried and for how long, what a refusal means, and where a start's status
is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from components.oci.client import job_runs
from components.platform import calls
from components.platform.calls import Call, ProviderError, Tell, call_of
from components.platform.runs import folder_of

T = TypeVar("T")

# OCI may give these answers while a new permission is not in force yet. Its own clients retry them after a change of
# identity. OCI gives the same answer for a resource that does not exist and for one that the caller may not see.
ACCESS_CODES = frozenset(
    {
        (404, "NotAuthorizedOrNotFound"),
        (400, "RelatedResourceNotAuthorizedOrNotFound"),
        (400, "InsufficientServicePermissions"),
        (400, "ResourceDisabled"),
    }
)
_REMEDIES = {
    "NotAuthenticated": "The tenancy does not know the key of this profile, or this machine's clock is wrong. Try "
    "`oci iam region list` with the same profile.",
    "NotAuthorizedOrNotFound": "It does not exist, or you have no access to it. `trainyard access` prints what the "
    "deployer needs.",
    "RelatedResourceNotAuthorizedOrNotFound": "The request names a resource that does not exist, or that you may not "
    "use. `trainyard access` prints what the deployer needs.",
    "LimitExceeded": "Ask for a higher service limit (Console: Governance, Limits), or remove what you no longer need. "
    "If the limit is for a shape, another shape may do.",
    "QuotaExceeded": "The compartment's quota is used up. Ask its administrator, or use a smaller shape.",
    "TooManyRequests": "OCI limits the rate of calls. Try again later, or with a lower `--parallel`.",
    "BucketNotEmpty": "Empty the bucket first, including its versions and unfinished uploads.",
}
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504})
_RETRIED_CONFLICTS = frozenset({"ConcurrentObjectUpdate", "ExternalServerIncorrectState"})
_LIVES = 50
_PAGE = 100
_URI = re.compile(r"oci://([^@/]+)@([^/]+)/(.+)")


def call_oci(call: Call, what: str, operation: Callable[[], T], access_minutes: float = 0.0) -> T:
    """Does `operation`. Retries while the cloud is busy, and for `access_minutes` while permissions are not in force
    yet."""
    return calls.call_with_retries(_ERRORS, call, what, operation, access_minutes)


def make_once(
    call: Call, what: str, identity: str, create: Callable[[str], T | None], access_minutes: float = 0.0
) -> T:
    """Creates with a retry token made from `identity`: repeating the request returns what the first one made.

    OCI remembers a token for a day. If the resource was deleted meanwhile, OCI says so (or `create` returns None).
    Then the same resource is made again with the next token.
    """
    for life in range(_LIVES):
        token = hashlib.sha256(f"{identity}\n{life}".encode()).hexdigest()[:40]
        try:
            made = call_oci(call, what, partial(create, token), access_minutes)
        except ProviderError as error:
            if getattr(error.__cause__, "code", None) != "InvalidatedRetryToken":
                raise
            continue
        if made is not None:
            return made
    raise ProviderError(f"{what}: made and deleted {_LIVES} times within a day.", "Try again tomorrow.")


def _oci_retry_seconds(error: Exception, access_minutes: float, patience: float) -> float:
    status, code = getattr(error, "status", None), getattr(error, "code", None)
    if (status, code) in ACCESS_CODES:
        return access_minutes * 60
    if status == 409 and code not in _RETRIED_CONFLICTS:
        return 0.0
    if status == 500 and "capacity" in str(getattr(error, "message", "")).lower():
        return 0.0
    if status in _TRANSIENT:
        return calls.TRANSIENT_SECONDS
    return patience if status is None and _is_network(error) else 0.0


def _is_network(error: Exception) -> bool:
    modules = {base.__module__.split(".")[0] for base in type(error).__mro__}
    return isinstance(error, OSError) or "requests" in modules or type(error).__name__ == "RequestException"


def list_oci_pages(list_page: Callable[..., Any]) -> Iterator[Any]:
    """Every item of a list. `list_page` takes the options of one page."""
    page: str | None = None
    while True:
        answer = list_page(limit=_PAGE, **({"page": page} if page else {}))
        yield from rows_of_answer(answer)
        page = answer.headers.get("opc-next-page")
        if not page:
            return


def rows_of_answer(answer: Any) -> Iterable[Any]:
    """The rows of a list. Some lists have them one level deeper."""
    return answer.data if isinstance(answer.data, list) else answer.data.items


def is_missing_in_oci(error: BaseException) -> bool:
    return getattr(error, "status", None) == 404


def oci_error_text(error: Exception) -> str:
    status, code = getattr(error, "status", None), getattr(error, "code", None)
    if status is None and _is_network(error):
        # The network error, without the texts with which the SDK wraps it.
        inner: Any = error
        while isinstance(inner, Exception) and inner.args and isinstance(inner.args[0], (Exception, str)):
            inner = inner.args[0]
        return f"no answer: {str(inner).splitlines()[0] if str(inner) else 'the connection failed'}"
    if status is None:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{status} {code}: {getattr(error, 'message', '')}"


def oci_refusal(what: str, error: Exception, waited: float = 0.0) -> ProviderError:
    """The SDK's error for people: what was attempted, the cloud's response, and the remedy."""
    if isinstance(error, ProviderError):
        return error
    if getattr(error, "status", None) is None and not _is_network(error):
        raise error
    after = f" (still after {waited:.0f} s)" if waited >= 1 else ""
    request_id = getattr(error, "request_id", None)
    request = f" [opc-request-id {request_id}]" if request_id else ""
    remedy = _REMEDIES.get(str(getattr(error, "code", "")), "")
    if getattr(error, "status", None) is None:
        remedy = "The cloud cannot be reached from here. Check the network, the region and CLIENT_HOST_OVERRIDES."
    if "capacity" in str(getattr(error, "message", "")).lower():
        remedy = "OCI has no free machine of this shape now. Try later, or use another shape or availability domain."
    return ProviderError(f"{what}: {oci_error_text(error)}{after}{request}", remedy)


def read_from_oci_if_exists(call: Call, what: str, operation: Callable[[], Any]) -> Any:
    """The data of a read, or None if the resource does not exist."""

    def read() -> Any:
        try:
            return operation().data
        except Exception as error:
            if is_missing_in_oci(error):
                return None
            raise

    return call_oci(call, what, read)


_ERRORS = calls.ErrorPolicy(_oci_retry_seconds, oci_error_text, oci_refusal)


def ask_oci(tell: Tell, what: str, operation: Callable[[], T]) -> T:
    """The cloud's response. Retries while the cloud is busy, and reports that."""
    return call_oci(call_of(what, tell), what, operation)


def unless_gone(tell: Tell, what: str, delete: Callable[[], Any]) -> None:
    try:
        ask_oci(tell, what, delete)
    except ProviderError as error:
        if error.__cause__ is None or not is_missing_in_oci(error.__cause__):
            raise


class StatusFolder(NamedTuple):
    """A folder in a bucket."""

    namespace: str
    bucket: str
    prefix: str

    def status(self, rank: int) -> str:
        """The name of a rank's status object."""
        return f"{self.prefix}/status/{rank}.json"


def status_folder(launch: Mapping[str, Any], run_id: str, variables: Mapping[str, Any]) -> str | None:
    """The folder of the start that a job run belongs to."""
    uri = folder_of(launch)
    return f"{uri}/{job_runs.start_of_job_run(run_id, variables)}" if uri is not None else None


def parse_bucket_folder(uri: str | None) -> StatusFolder | None:
    """Reads `oci://bucket@namespace/prefix`. None for any other text."""
    parts = _URI.fullmatch(uri or "")
    return StatusFolder(parts[2], parts[1], parts[3]) if parts else None
