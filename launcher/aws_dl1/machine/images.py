# SPDX-License-Identifier: Apache-2.0
"""Gets a run's image onto the machine. Amazon's registry lets the role of the instance in."""

from __future__ import annotations

import base64
import http.client
import re
import time
from collections.abc import Callable

from launcher.aws_dl1.fetch import AwsError, Identity
from launcher.aws_dl1.machine.commands import CommandError, run
from launcher.aws_dl1.services import ask
from launcher.errors import LaunchError, MissingError
from launcher.say import Voice

_ECR = re.compile(r"([0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?)/.+")
# No other try mends these.
_FINAL = ("not found", "manifest unknown", "invalid reference", "no such image", "does not exist")
_TRIES, _PAUSE, _PULL_SECONDS = 4, 5.0, 3600.0


def pull(identity: Identity, image: str, say: Voice, stopped: Callable[[], bool]) -> None:
    """LaunchError where the image is not there; MissingError where the registry does not give it in time."""
    started = time.monotonic()
    for number in range(1, _TRIES + 1):
        try:
            _log_in(identity, image)
            run(["docker", "pull", "--quiet", image], _PULL_SECONDS)
            say(f"image {image} is here after {time.monotonic() - started:.1f} s")
            return
        except (CommandError, AwsError, OSError, http.client.HTTPException) as error:
            problem = str(error)
        if any(words in problem.lower() for words in _FINAL):
            raise LaunchError(f"the image {image} cannot be pulled ({problem}): push it, or correct `image`")
        if number < _TRIES and not stopped():
            say(f"the image {image} cannot be pulled yet ({problem}); trying again")
            time.sleep(_PAUSE * number)
    raise MissingError(f"the image {image} cannot be pulled ({problem}): check the way to its registry, and access")


def _log_in(identity: Identity, image: str) -> None:
    match = _ECR.fullmatch(image)
    if not match:
        return
    there = Identity({**identity.environment, "AWS_REGION": match[2]})
    there.metadata = identity.metadata
    tokens = ask(there, "ecr", "GetAuthorizationToken", {})["authorizationData"]
    user, _, password = base64.b64decode(tokens[0]["authorizationToken"]).decode().partition(":")
    run(["docker", "login", "--username", user, "--password-stdin", match[1]], given=password)
