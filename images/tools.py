# SPDX-License-Identifier: Apache-2.0
"""The programs that build and push images: docker, podman, buildah; one row each, the first that works is taken."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from images.errors import ImageError
from provider.base.asking import Tell

_ANSWER_SECONDS = 60.0
_KEPT = 8192
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Tool:
    """One row. `alive` fails where the program is there and cannot work."""

    name: str
    alive: tuple[str, ...]
    # How a push tells the digest: into a file, or (None) by asking for the image afterwards.
    digest_file: str | None
    # The variable that says where its logins are kept.
    auth_variable: str
    # How it names the place of a push that is not the image's own, and one without TLS; docker has no words for them.
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
    told = [tool.digest_file, str(digest_file)] if tool.digest_file and digest_file else []
    if tool.destination is None:
        renamed = [[tool.name, "tag", address, place]] if place != address else []
        return [*renamed, [tool.name, "push", *told, place]]
    plain = tool.plain_http if plain_http else ()
    there = [f"{tool.destination}{place}"] if place != address else []
    return [[tool.name, "push", *plain, *told, address, *there]]


def login_words(tool: Tool, host: str, user: str) -> str:
    """For a person's shell: the token comes from a prompt and goes to the program by its standard input."""
    return f"{tool.name} login {host} --username '{user}' --password-stdin"


def find(name: str | None, dry_run: bool, tell: Tell) -> Tool:
    """The named tool, else the first that is there and answers. A dry run needs none."""
    passed_over: list[str] = []
    for tool in TOOLS:
        if name not in (None, tool.name):
            continue
        why = _why_not(tool)
        if not why or (dry_run and name):
            for line in passed_over:
                tell(f"Skipped: {line}")
            return tool
        passed_over.append(f"{tool.name}: {why}")
    if dry_run:
        return TOOLS[0]
    found = "\n  ".join(passed_over)
    raise ImageError(
        f"no program here can build images:\n  {found}\n"
        "Install docker, podman or buildah (Debian and Ubuntu: apt install buildah), or start its service"
    )


def _why_not(tool: Tool) -> str:
    """Why a tool cannot be used; empty when it can."""
    if shutil.which(tool.name) is None:
        return "not on PATH"
    try:
        asked = subprocess.run(
            [tool.name, *tool.alive], capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"`{tool.name} {' '.join(tool.alive)}` did not answer within {_ANSWER_SECONDS:.0f} seconds"
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    if asked.returncode == 0:
        return ""
    said = asked.stderr.strip().splitlines() or asked.stdout.strip().splitlines() or ["it does not say why"]
    return said[-1]


def run(tool: Tool, words: Sequence[str], show: Tell, more: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Runs a tool, with each line of its progress shown as it comes; its exit code, and the last of what it said."""
    environment = {**os.environ, **tool.environment, **(more or {})}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        said = b""
        for line in process.stdout or ():
            # What a registry or a step of the build printed is on its way to the terminal, too.
            show(line.decode(errors="replace").rstrip("\r\n").replace("\r", "\n"))
            said = (said + line)[-_KEPT:]
    return process.returncode, said.decode(errors="replace")


def pushed_digest(tool: Tool, address: str, digest_file: Path) -> str:
    """The digest the registry knows an image by, after its push; empty where the tool does not tell."""
    if tool.digest_file:
        text = digest_file.read_text("utf-8") if digest_file.exists() else ""
    else:
        words = [tool.name, "image", "inspect", "--format", "{{json .RepoDigests}}", address]
        asked = subprocess.run(words, capture_output=True, text=True)
        listed = json.loads(asked.stdout) if asked.returncode == 0 and asked.stdout.strip() else []
        repository = address.rpartition(":")[0]
        text = next((one for one in listed or () if one.startswith(f"{repository}@")), "")
    match = _DIGEST.search(text)
    return match[0] if match else ""
