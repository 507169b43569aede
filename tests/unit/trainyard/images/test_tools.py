# SPDX-License-Identifier: Apache-2.0
"""Which tool is used, and its command line. The tools are small scripts on a PATH of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from components.platform.images import ImageError
from trainyard.images import image_tools
from trainyard.images.image_tools import NAMES, TOOLS, Build

ADDRESS = "iad.ocir.io/acme/vision/dt:1.0"
ELSEWHERE = "127.0.0.1:5000/acme/vision/dt:1.0"
DIGEST = f"sha256:{'ab' * 32}"
ROW = dict(zip(NAMES, TOOLS, strict=True))
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts scripts under the names of tools; nothing else is on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def put(name: str, script: str = "exit 0") -> None:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return put


def test_the_first_working_tool_is_used(install: Install) -> None:
    install("buildah")
    assert image_tools.find_tool(None, False, print).name == "buildah"
    install("podman")
    assert image_tools.find_tool(None, False, print).name == "podman"
    install("docker")
    assert image_tools.find_tool(None, False, print).name == "docker"


def test_a_tool_that_does_not_answer_is_skipped_and_named(install: Install) -> None:
    install("docker", "echo Cannot connect to the daemon >&2; exit 1")
    install("buildah")
    told: list[str] = []
    assert image_tools.find_tool(None, False, told.append).name == "buildah"
    assert told == ["Skipped: docker: Cannot connect to the daemon", "Skipped: podman: not on PATH"]


def test_without_a_working_tool_the_error_has_each_reason(install: Install) -> None:
    install("docker", "exit 1")
    with pytest.raises(ImageError) as error:
        image_tools.find_tool(None, False, print)
    assert "docker: it does not say why" in str(error.value)
    assert "podman: not on PATH" in str(error.value)
    assert "apt install buildah" in str(error.value)


def test_a_named_tool_is_used_or_none(install: Install) -> None:
    install("docker")
    install("buildah")
    assert image_tools.find_tool("buildah", False, print).name == "buildah"
    with pytest.raises(ImageError, match="podman: not on PATH"):
        image_tools.find_tool("podman", False, print)


@pytest.mark.usefixtures("install")
def test_a_dry_run_needs_no_working_tool() -> None:
    assert image_tools.find_tool(None, True, print).name == "docker"
    assert image_tools.find_tool("podman", True, print).name == "podman"


@pytest.mark.parametrize("name", NAMES)
def test_each_tool_builds_with_its_own_command(name: str) -> None:
    wish = Build(
        Path("/context"), Path("launcher/images/base/Dockerfile"), ADDRESS, "linux/amd64", {"BASE": "a:1"}, None
    )
    assert image_tools.build_words(ROW[name], wish) == [
        name, "build", "--platform", "linux/amd64", "--file", "/context/launcher/images/base/Dockerfile",
        "--tag", ADDRESS, "--build-arg", "BASE=a:1", "/context",
    ]  # fmt: skip


def test_credentials_of_an_index_are_a_secret_of_the_build() -> None:
    wish = Build(Path("/c"), Path("Dockerfile"), ADDRESS, "linux/amd64", {}, Path("/home/me/pip.conf"))
    words = image_tools.build_words(ROW["docker"], wish)
    assert words[words.index("--secret") + 1] == "id=pip,src=/home/me/pip.conf"
    assert "--build-arg" not in words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("docker", ["docker", "push", ADDRESS]),
        ("podman", ["podman", "push", "--digestfile", "/d", ADDRESS]),
        ("buildah", ["buildah", "push", "--digestfile", "/d", ADDRESS]),
    ],
)
def test_each_tool_pushes_with_its_own_command(name: str, words: list[str]) -> None:
    assert image_tools.push_words(ROW[name], ADDRESS, ADDRESS, digest_file=Path("/d")) == [words]


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("docker", [["docker", "tag", ADDRESS, ELSEWHERE], ["docker", "push", ELSEWHERE]]),
        ("podman", [["podman", "push", "--tls-verify=false", ADDRESS, f"docker://{ELSEWHERE}"]]),
        ("buildah", [["buildah", "push", "--tls-verify=false", ADDRESS, f"docker://{ELSEWHERE}"]]),
    ],
)
def test_the_words_of_a_push_to_another_endpoint(name: str, commands: list[list[str]]) -> None:
    assert image_tools.push_words(ROW[name], ADDRESS, ELSEWHERE, plain_http=True) == commands


@pytest.mark.parametrize("name", NAMES)
def test_a_login_takes_its_token_from_standard_input(name: str) -> None:
    assert (
        image_tools.login_words(ROW[name], "iad.ocir.io", "acme/<user>")
        == f"{name} login iad.ocir.io --username 'acme/<user>' --password-stdin"
    )


def test_the_output_of_a_tool_is_shown_and_its_end_returned(install: Install) -> None:
    shown: list[str] = []
    install("docker", "echo $DOCKER_BUILDKIT; echo wrong >&2; exit 3")
    code, said = image_tools.run_tool(ROW["docker"], ["docker"], shown.append)
    assert (code, said.split()) == (3, ["1", "wrong"])
    assert shown == ["1", "wrong"]


def test_the_digest_is_read_as_each_tool_reports_it(install: Install, tmp_path: Path) -> None:
    file = tmp_path / "digest"
    assert image_tools.pushed_digest(ROW["buildah"], ADDRESS, file) == ""
    file.write_text(DIGEST)
    assert image_tools.pushed_digest(ROW["buildah"], ADDRESS, file) == DIGEST
    other = f"docker.io/library/dt@sha256:{'0' * 64}"
    install("docker", f"""echo '["{other}","iad.ocir.io/acme/vision/dt@{DIGEST}"]'""")
    assert image_tools.pushed_digest(ROW["docker"], ADDRESS, file) == DIGEST
    install("docker", "exit 1")
    assert image_tools.pushed_digest(ROW["docker"], ADDRESS, file) == ""


def test_a_tool_that_cannot_be_started_is_skipped(install: Install, tmp_path: Path) -> None:
    (tmp_path / "podman").write_text("no program")
    (tmp_path / "podman").chmod(0o755)
    install("buildah")
    assert image_tools.find_tool(None, False, print).name == "buildah"
    assert os.environ["PATH"] == str(tmp_path)
