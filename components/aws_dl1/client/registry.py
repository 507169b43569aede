# SPDX-License-Identifier: Apache-2.0
"""ECR: where images go, what is checked there before a push, and why a push fails."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable
from typing import Any

from components.plan.model import Plan
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
)
from components.s3.calls import code_of, refusal
from components.s3.session import Session

# ECR gives every caller's token to this user.
USER = "AWS"
# Stands in the words of a dry run where nobody was asked.
UNKNOWN_ACCOUNT = "<account>"
# The first match counts: ECR's word for an unknown caller also contains `denied`.
PUSH_FAILURES = (
    PushFailure(
        r"no basic auth|authorization token has expired|not authenticated|authentication required|unauthori[sz]ed",
        "{host} got no login, or did not accept it",
        "Log in: {login}",
    ),
    IMMUTABLE,
    PushFailure(
        r"denied|forbidden|not authorized|\b403\b",
        "the principal that is logged in to {host} may not push to {repository}",
        "Pushing needs ecr:PutImage and others on it: `trainyard access {stack}` prints them",
    ),
    NO_REPOSITORY,
    NOT_BUILT,
    UNREACHABLE,
)
# The repository and the component around it: the engine makes a targeted part only together with its parents.
_TARGETS = ("**::trainyard:aws-dl1:Storage::storage", "**::repository")
_LOGIN = "Check the credentials (AWS_PROFILE) and the network"


def registry_address(account: str, plan: Plan) -> str:
    return f"{account}.dkr.ecr.{plan.region}.amazonaws.com/{plan.registry.repository}"


def account(session: Session) -> str:
    return str(_ask(lambda: session.account, "Ask AWS which account this is"))


def look_up_image(session: Session, plan: Plan, image: WantedImage) -> RegisteredImage | None:
    """What the registry has. None if the address is not of this account's registry in this region."""
    if image.host != registry_address(session.account, plan).partition("/")[0]:
        return None
    client = session.client("ecr", plan.region)
    repository = _known(lambda: client.describe_repositories(repositoryNames=[image.path])["repositories"][0])
    if repository is None:
        return RegisteredImage(False)
    wanted = {"repositoryName": image.path, "imageIds": [{"imageTag": image.tag}]}
    found = _known(lambda: client.describe_images(**wanted)["imageDetails"][0])
    immutable = str(repository.get("imageTagMutability", "")).startswith("IMMUTABLE")
    return RegisteredImage(True, immutable, str(found["imageDigest"]) if found else "")


def make_words(plan: Plan) -> str:
    """The command that makes a stack's repository before the rest of the stack."""
    targets = " ".join(f"--target {shlex.quote(one)}" for one in _TARGETS)
    return f"pulumi up -s {plan.stack} {targets}"


def password(session: Session, plan: Plan) -> str:
    """A token of the registry for whoever the session acts as, good for twelve hours."""
    answer = _ask(
        lambda: session.client("ecr", plan.region).get_authorization_token()["authorizationData"][0],
        "Ask ECR for a login",
    )
    return base64.b64decode(answer["authorizationToken"]).decode().partition(":")[2]


def _known(read: Callable[[], Any]) -> Any:
    """The answer, or None if ECR knows no such thing."""
    try:
        return read()
    except Exception as error:
        if code_of(error) in ("RepositoryNotFoundException", "ImageNotFoundException"):
            return None
        raise


def _ask(call: Callable[[], Any], what: str) -> Any:
    try:
        return call()
    except ProviderError as error:
        raise ImageError(f"{error.cause}\n{error.remedy or _LOGIN}") from None
    except Exception as error:
        refused = refusal(what, error)
        raise ImageError(f"{refused.cause}\n{refused.remedy or _LOGIN}") from None
