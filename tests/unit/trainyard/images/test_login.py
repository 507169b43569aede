# SPDX-License-Identifier: Apache-2.0
"""The endpoint of a push, and the temporary login that a tool gets for it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from components.platform.images import Endpoint, ImageError
from trainyard.images.build_push import ENDPOINT_VARIABLE, login_variables, registry_endpoint
from trainyard.images.image_tools import NAMES, TOOLS

ROW = dict(zip(NAMES, TOOLS, strict=True))
ADDRESS = "iad.ocir.io/acme/vision/dt:1.0"


def _login(file: Path, host: str) -> str:
    assert file.stat().st_mode & 0o777 == 0o600
    known = json.loads(file.read_text())["auths"]
    assert list(known) == [host]
    return base64.b64decode(known[host]["auth"]).decode()


def test_an_image_goes_to_the_host_it_names() -> None:
    place = registry_endpoint("iad.ocir.io", {})
    assert (place.url, place.address(ADDRESS)) == ("https://iad.ocir.io", ADDRESS)


def test_the_environment_may_name_another_registry() -> None:
    place = registry_endpoint("iad.ocir.io", {ENDPOINT_VARIABLE: "http://127.0.0.1:5000"})
    assert place == Endpoint("127.0.0.1:5000", plain_http=True, elsewhere=True)
    assert (place.url, place.address(ADDRESS)) == ("http://127.0.0.1:5000", "127.0.0.1:5000/acme/vision/dt:1.0")


@pytest.mark.parametrize(
    "told", ["127.0.0.1:5000", "ftp://host", "https://host/path", "http://", "http://[", "https://ann:word@host"]
)
def test_an_invalid_endpoint_is_refused(told: str) -> None:
    with pytest.raises(ImageError, match=re.escape(f"{ENDPOINT_VARIABLE} is not a valid address: `{told}`\n")):
        registry_endpoint("iad.ocir.io", {ENDPOINT_VARIABLE: told})


@pytest.mark.parametrize("name", ["podman", "buildah"])
def test_podman_and_buildah_read_one_file(name: str, tmp_path: Path) -> None:
    told = login_variables(ROW[name], tmp_path, Endpoint("iad.ocir.io"), "BEARER_TOKEN", "secret")
    assert list(told) == ["REGISTRY_AUTH_FILE"]
    assert _login(Path(told["REGISTRY_AUTH_FILE"]), "iad.ocir.io") == "BEARER_TOKEN:secret"


def test_docker_keeps_its_context_but_no_other_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, own = tmp_path / "usual", tmp_path / "own"
    (usual / "contexts").mkdir(parents=True)
    own.mkdir()
    (usual / "config.json").write_text(
        json.dumps({"currentContext": "vm", "credsStore": "desktop", "auths": {"docker.io": {"auth": "x"}}})
    )
    monkeypatch.setenv("DOCKER_CONFIG", str(usual))
    told = login_variables(ROW["docker"], own, Endpoint("iad.ocir.io"), "BEARER_TOKEN", "secret")
    assert told == {"DOCKER_CONFIG": str(own)}
    config = json.loads((own / "config.json").read_text())
    assert config["currentContext"] == "vm"
    assert "credsStore" not in config
    assert _login(own / "config.json", "iad.ocir.io") == "BEARER_TOKEN:secret"
    assert (own / "contexts").resolve() == (usual / "contexts").resolve()
    assert json.loads((usual / "config.json").read_text())["auths"] == {"docker.io": {"auth": "x"}}


def test_docker_without_a_configuration_gets_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "none"))
    login_variables(ROW["docker"], own, Endpoint("127.0.0.1:1"), "BEARER_TOKEN", "secret")
    assert _login(own / "config.json", "127.0.0.1:1") == "BEARER_TOKEN:secret"
