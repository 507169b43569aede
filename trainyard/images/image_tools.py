# SPDX-License-Identifier: Apache-2.0
"""The programs that build and push images: docker, podman and buildah, one row each. The first that works is used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.platform.calls import Tell
from components.platform.images import ImageError

_ANSWER_SECONDS = 60.0
_KEPT = 8192
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Tool:
    """One row. The command `alive` fails if the program is installed but cannot work."""

    name: str
    alive: tuple[str, ...]
    # The option that writes the digest of a push into a file. None: the digest is read from the image afterwards.
    digest_file: str | None
    # The variable that names the folder or file with its logins.
    auth_variable: str
    # Its options for another destination, and for one without TLS. Docker has neither.
    destination: str | None = None
    plain_http: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


TOOLS = (
    Tool("docker", ("version",), None, "DOCKER_CONFIG", environment={"DOCKER_BUILDKIT": "1"}),
    Tool("podman", ("info",), "--digestfile", "REGISTRY_AUTH_FILE", "docker://", ("--tls-verify=false",)),
    Tool("buildah", ("info",), "--digestfile", "REGISTRY_AUTH_FILE", "docker://", ("--tls-verify=false",)),
)
NAMES = tuple(tool.name for tool in TOOLS)


@dataclass(frozen=True)
class Build:
    """What an image is built from."""

    context: Path
    dockerfile: Path
    address: str
    platform: str
    arguments: Mapping[str, str]
    pip_config: Path | None


def build_words(tool: Tool, build: Build) -> list[str]:
    arguments = [word for name, value in build.arguments.items() for word in ("--build-arg", f"{name}={value}")]
    secret = ["--secret", f"id=pip,src={build.pip_config}"] if build.pip_config else []
    head = [tool.name, "build", "--platform", build.platform, "--file", str(build.context / build.dockerfile)]
    return [*head, "--tag", build.address, *arguments, *secret, str(build.context)]


def push_words(
    tool: Tool, address: str, place: str, plain_http: bool = False, digest_file: Path | None = None
) -> list[list[str]]:
    """The commands that push an image to its own address, or to another place."""
    digest_words = [tool.digest_file, str(digest_file)] if tool.digest_file and digest_file else []
    if tool.destination is None:
        renamed = [[tool.name, "tag", address, place]] if place != address else []
        return [*renamed, [tool.name, "push", *digest_words, place]]
    plain = tool.plain_http if plain_http else ()
    there = [f"{tool.destination}{place}"] if place != address else []
    return [[tool.name, "push", *plain, *digest_words, address, *there]]


def login_words(tool: Tool, host: str, user: str) -> str:
    """The login command for a person's shell. The program reads the token from its standard input."""
    return f"{tool.name} login {host} --username '{user}' --password-stdin"


def find_tool(name: str | None, dry_run: bool, tell: Tell) -> Tool:
    """The named tool, else the first that is installed and works. A dry run does not need a working one."""
    passed_over: list[str] = []
    for tool in TOOLS:
        if name not in (None, tool.name):
            continue
        why = _why_unusable(tool)
        if not why or (dry_run and name):
            for line in passed_over:
                tell(f"Skipped: {line}")
            return tool
        passed_over.append(f"{tool.name}: {why}")
    if dry_run:
        return TOOLS[0]
    reasons = "\n  ".join(passed_over)
    raise ImageError(
        f"no program here can build images:\n  {reasons}\n"
        "Install docker, podman or buildah (Debian and Ubuntu: apt install buildah), or start its service"
    )


def _why_unusable(tool: Tool) -> str:
    """Why a tool cannot be used; empty when it can."""
    if shutil.which(tool.name) is None:
        return "not on PATH"
    try:
        answer = subprocess.run(
            [tool.name, *tool.alive], capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"`{tool.name} {' '.join(tool.alive)}` did not answer within {_ANSWER_SECONDS:.0f} seconds"
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    if answer.returncode == 0:
        return ""
    lines = answer.stderr.strip().splitlines() or answer.stdout.strip().splitlines() or ["it does not say why"]
    return lines[-1]


def run_tool(tool: Tool, words: Sequence[str], show: Tell, more: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a tool and show each line as it comes. Returns the exit code and the last part of the output."""
    environment = {**os.environ, **tool.environment, **(more or {})}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        output = b""
        for line in process.stdout or ():
            # Registries and build steps are not trusted: `show` must escape their output for the terminal.
            show(line.decode(errors="replace").rstrip("\r\n").replace("\r", "\n"))
            output = (output + line)[-_KEPT:]
    return process.returncode, output.decode(errors="replace")


def pushed_digest(tool: Tool, address: str, digest_file: Path) -> str:
    """The digest of a pushed image in the registry. Empty if the tool does not report it."""
    if tool.digest_file:
        text = digest_file.read_text("utf-8") if digest_file.exists() else ""
    else:
        words = [tool.name, "image", "inspect", "--format", "{{json .RepoDigests}}", address]
        answer = subprocess.run(words, capture_output=True, text=True)
        listed = json.loads(answer.stdout) if answer.returncode == 0 and answer.stdout.strip() else []
        repository = address.rpartition(":")[0]
        text = next((digest for digest in listed or () if digest.startswith(f"{repository}@")), "")
    match = _DIGEST.search(text)
    return match[0] if match else ""
