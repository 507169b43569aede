# SPDX-License-Identifier: Apache-2.0
"""Chooses AWS credentials, and makes a command's own calls to the local AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from catalog.tables import table
from components.platform.calls import LocalCloud, ProviderError, Tell, call_of
from components.platform.client import Where
from components.platform.local import Row
from components.s3 import Session, call_aws, code_of, is_missing_in_aws
from components.s3 import list_aws_pages as _pages

REGION_KEY = "aws:region"
PROFILE_KEY = "aws:profile"
# The endpoint of an S3 that is not Amazon's.
ENDPOINT_KEY = "aws:endpoint"
DEPLOYER, USER = "deployer", "user"
_PROVIDER = "pulumi:providers:aws"
T = TypeVar("T")
_MISSING = ("NotFound", "NoSuch", "DoesNotExist", "Unknown")


def aws_session_of_caller(where: Where) -> Session:
    """The session of the caller. The order of profiles: the caller's, the stack file's, that of all AWS clients."""
    region, profile = where.config.get(REGION_KEY), where.profile
    if where.cloud is not None:
        return Session.of({"region": region, "profile": profile}, where.cloud.env_of_caller())
    endpoint = where.config.get(ENDPOINT_KEY)
    return Session.of({"region": region, "endpoint": endpoint, "profile": profile or where.config.get(PROFILE_KEY)})


def local_aws_session(cloud: LocalCloud, profile: str, region: str) -> Session:
    """A session with a profile of the local cloud's own configuration file."""
    return Session.of({"region": region}, cloud.env_for(profile))


def region_of(rows: Sequence[Row]) -> str:
    """The region of a stack, read from its state."""
    for row in rows:
        region = (row.get("outputs") or {}).get("region") or (row.get("inputs") or {}).get("region")
        if region:
            return str(region)
    return local_aws_regions()[0]


def local_aws_regions() -> list[str]:
    """The regions of the local AWS."""
    return list(table("aws_local")["zones"])


def ask_aws(tell: Tell, what: str, operation: Callable[[], T]) -> T:
    """The cloud's response. Retries while the cloud is busy, and reports that."""
    return call_aws(call_of(what, tell), what, operation)


def ask_aws_if_exists(tell: Tell, what: str, operation: Callable[[], T]) -> T | None:
    """As `ask`, but None if the resource does not exist."""
    try:
        return ask_aws(tell, what, operation)
    except ProviderError as error:
        cause = error.__cause__
        if is_missing_in_aws(cause) or any(word in code_of(cause) for word in _MISSING):
            return None
        raise


def list_pages(tell: Tell, what: str, client: Any, operation: str, **request: Any) -> Iterator[Any]:
    return _pages(call_of(what, tell), what, client, operation, **request)
