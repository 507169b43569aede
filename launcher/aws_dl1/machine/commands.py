# SPDX-License-Identifier: Apache-2.0
"""Runs programs of the machine: docker, and the tools of accelerators and EFA."""

from __future__ import annotations

import base64
import http.client
import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from launcher.aws_dl1.fetch import AwsError, Identity
from launcher.aws_dl1.services import call_json_service
from launcher.errors import LaunchError, MissingError
from launcher.printing import LinePrinter

_SECONDS = 60.0
_ECR = re.compile(r"([0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?)/.+")
# A retry would fail in the same way.
_FINAL = ("not found", "manifest unknown", "invalid reference", "no such image", "does not exist")
_TRIES, _PAUSE, _PULL_SECONDS = 4, 5.0, 3600.0


class CommandError(Exception):
    """A program that is missing or failed; the text has its last line."""


def run_program(words: Sequence[str], seconds: float = _SECONDS, given: str = "") -> str:
    """Runs a program and returns its output."""
    try:
        done = subprocess.run(words, input=given.encode(), capture_output=True, timeout=seconds, check=False)
    except FileNotFoundError:
        raise CommandError(f"`{words[0]}` is not on this machine") from None
    except OSError as error:
        raise CommandError(f"`{words[0]}` cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"`{' '.join(words[:2])}` took longer than {seconds:.0f} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise CommandError(f"`{' '.join(words[:2])}`: {lines[-1] if lines else f'code {done.returncode}'}")
    return done.stdout.decode(errors="replace")


@dataclass(frozen=True)
class Container:
    """The state of a container by docker. `code`: None while it runs."""

    code: int | None
    out_of_memory: bool
    error: str


def inspect_container(name: str) -> Container | None:
    """The state of a container; None if there is no such container."""
    try:
        state: Mapping[str, Any] = json.loads(
            run_program(["docker", "inspect", "--type=container", "--format={{json .State}}", name])
        )
    except CommandError as error:
        if "No such" in str(error):
            return None
        raise
    running = state["Status"] in ("created", "running", "paused", "restarting", "removing")
    return Container(
        None if running else int(state["ExitCode"]), bool(state.get("OOMKilled")), str(state.get("Error") or "")
    )


def wait_for_container(name: str, ended: Callable[[], None]) -> None:
    """Calls `ended` when the container has ended, or docker has failed. So `ended` has to inspect the container."""
    with suppress(OSError):
        subprocess.run(
            ["docker", "wait", name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            check=False,
        )  # fmt: skip
    ended()


def stop_container(name: str, seconds: int) -> None:
    """Sends SIGTERM, and SIGKILL after `seconds`."""
    run_program(["docker", "stop", f"--time={seconds}", name], seconds + _SECONDS)


def remove_container(name: str) -> None:
    """Removes a container with the files that it has written inside."""
    run_program(["docker", "rm", "--force", "--volumes", name])


def pull_image(identity: Identity, image: str, say: LinePrinter, stopped: Callable[[], bool]) -> None:
    """Pulls an image. LaunchError: it does not exist. MissingError: it could not be pulled in time."""
    started = time.monotonic()
    for number in range(1, _TRIES + 1):
        try:
            _log_in_to_registry(identity, image)
            run_program(["docker", "pull", "--quiet", image], _PULL_SECONDS)
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


def _log_in_to_registry(identity: Identity, image: str) -> None:
    match = _ECR.fullmatch(image)
    if not match:
        return
    there = Identity({**identity.environment, "AWS_REGION": match[2]})
    there.metadata = identity.metadata
    tokens = call_json_service(there, "ecr", "GetAuthorizationToken", {})["authorizationData"]
    user, _, password = base64.b64decode(tokens[0]["authorizationToken"]).decode().partition(":")
    run_program(["docker", "login", "--username", user, "--password-stdin", match[1]], given=password)
