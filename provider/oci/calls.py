# SPDX-License-Identifier: Apache-2.0
"""Calls of OCI's API: what is tried again and for how long, and what a refusal means."""

import hashlib
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from provider.base.errors import ProviderError
from provider.base.resource import Call

T = TypeVar("T")

# Answers to a call whose permission is granted but not yet in force: OCI's own clients retry these after a write to
# identity. A resource that is not there and one that may not be seen look the same.
ACCESS_CODES = frozenset(
    {
        (404, "NotAuthorizedOrNotFound"),
        (400, "RelatedResourceNotAuthorizedOrNotFound"),
        (400, "InsufficientServicePermissions"),
        (400, "ResourceDisabled"),
    }
)
_REMEDIES = {
    "NotAuthenticated": "The key of this profile is not known to the tenancy, or the clock is wrong: check `oci iam "
    "region list` with the same profile.",
    "NotAuthorizedOrNotFound": "It does not exist, or whoever runs this may not see it: `trainyard access` prints what "
    "the deployer needs.",
    "RelatedResourceNotAuthorizedOrNotFound": "Something named in the request does not exist or may not be used by "
    "whoever runs this: `trainyard access` prints what the deployer needs.",
    "LimitExceeded": "Ask for a higher service limit (Console: Governance, Limits), remove what is no longer "
    "needed, or, where it is about a shape, take another.",
    "QuotaExceeded": "The compartment's quota is used up: ask its administrator, or take a smaller shape.",
    "TooManyRequests": "OCI limits the rate of calls: try again later, or with a lower `--parallel`.",
    "BucketNotEmpty": "Empty the bucket first, its versions and unfinished uploads too.",
}
_TRANSIENT = frozenset({408, 409, 429, 500, 502, 503, 504})
_RETRIED_CONFLICTS = frozenset({"ConcurrentObjectUpdate", "ExternalServerIncorrectState"})
_TRANSIENT_SECONDS = 120.0
_LONGEST_PAUSE = 15.0
_LIVES = 50


def attempt(call: Call, what: str, operation: Callable[[], T], access_minutes: float = 0.0) -> T:
    """Do `operation`; try again while the cloud is busy, and for `access_minutes` while access is not in force."""
    first_refused, tries = 0.0, 0
    while True:
        call.stop.check()
        try:
            return operation()
        except Exception as error:
            allowed = _seconds_allowed(error, access_minutes)
            # However long the first call took to be refused, it is tried once more.
            first_refused = first_refused or time.monotonic()
            elapsed = time.monotonic() - first_refused
            if elapsed >= allowed:
                raise refusal(what, error, elapsed if allowed else 0.0) from error
            reason = error_text(error)
        pause = min(0.5 * 1.6**tries, _LONGEST_PAUSE, max(allowed - elapsed, 0.05)) * random.uniform(0.8, 1.0)
        tries += 1
        _tell(call, what, reason, elapsed, allowed, first=tries == 1)
        call.stop.wait(pause)


def make_once(
    call: Call, what: str, identity: str, create: Callable[[str], T | None], access_minutes: float = 0.0
) -> T:
    """Create with a retry token made from `identity`: a repeated request gives what the first one made.

    OCI remembers tokens for a day. When what a token had made was deleted meanwhile, it says so (or `create` finds
    nothing and gives None), and the next life of the same thing takes the next token.
    """
    for life in range(_LIVES):
        token = hashlib.sha256(f"{identity}\n{life}".encode()).hexdigest()[:40]
        try:
            made = attempt(call, what, partial(create, token), access_minutes)
        except ProviderError as error:
            if getattr(error.__cause__, "code", None) != "InvalidatedRetryToken":
                raise
            continue
        if made is not None:
            return made
    raise ProviderError(f"{what}: made and deleted {_LIVES} times within a day.", "Try again tomorrow.")


def _tell(call: Call, what: str, reason: str, elapsed: float, allowed: float, first: bool) -> None:
    if first:
        call.report.info(f"{what}: {reason}; trying again for up to {allowed:.0f} s")
    call.report.status(f"{what}: trying again, {elapsed:.0f} of {allowed:.0f} s: {reason}")


def _seconds_allowed(error: Exception, access_minutes: float) -> float:
    status, code = getattr(error, "status", None), getattr(error, "code", None)
    if (status, code) in ACCESS_CODES:
        return access_minutes * 60
    if status == 409 and code not in _RETRIED_CONFLICTS:
        return 0.0
    if status == 500 and "capacity" in str(getattr(error, "message", "")).lower():
        return 0.0
    return _TRANSIENT_SECONDS if status in _TRANSIENT or (status is None and _is_network(error)) else 0.0


def _is_network(error: Exception) -> bool:
    modules = {base.__module__.split(".")[0] for base in type(error).__mro__}
    return isinstance(error, OSError) or "requests" in modules or type(error).__name__ == "RequestException"


def is_gone(error: BaseException) -> bool:
    return getattr(error, "status", None) == 404


def error_text(error: Exception) -> str:
    status, code = getattr(error, "status", None), getattr(error, "code", None)
    if status is None and _is_network(error):
        return f"no answer: {_innermost(error)}"
    if status is None:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{status} {code}: {getattr(error, 'message', '')}"


def _innermost(error: Any) -> str:
    """What the network said, without the paragraphs that the SDK wraps around it."""
    while isinstance(error, Exception) and error.args and isinstance(error.args[0], (Exception, str)):
        error = error.args[0]
    return str(error).splitlines()[0] if str(error) else "the connection failed"


def refusal(what: str, error: Exception, waited: float = 0.0) -> ProviderError:
    """The error of the SDK as a person wants it: what was tried, what the cloud said, what to do."""
    if isinstance(error, ProviderError):
        return error
    if getattr(error, "status", None) is None and not _is_network(error):
        raise error
    after = f" (still after {waited:.0f} s)" if waited >= 1 else ""
    request_id = getattr(error, "request_id", None)
    request = f" [opc-request-id {request_id}]" if request_id else ""
    remedy = _REMEDIES.get(str(getattr(error, "code", "")), "")
    if getattr(error, "status", None) is None:
        remedy = "The cloud can not be reached from here: check the network, the region and CLIENT_HOST_OVERRIDES."
    if "capacity" in str(getattr(error, "message", "")).lower():
        remedy = "OCI has no free machine of this shape now: try later, or another shape or availability domain."
    return ProviderError(f"{what}: {error_text(error)}{after}{request}", remedy)


def found(call: Call, what: str, operation: Callable[[], Any]) -> Any:
    """The data of a read, or None when there is no such thing."""

    def read() -> Any:
        try:
            return operation().data
        except Exception as error:
            if is_gone(error):
                return None
            raise

    return attempt(call, what, read)
