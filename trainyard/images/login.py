# SPDX-License-Identifier: Apache-2.0
"""Where a push goes, and the login that the tool uses for this one push."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from components.platform.image_errors import ImageError
from components.platform.images import Endpoint
from trainyard.images.tools import Tool

# Says where the registry is, when it is not at the host that the images' addresses name.
ENDPOINT_VARIABLE = "TRAINYARD_REGISTRY"


def endpoint(host: str, environment: Mapping[str, str]) -> Endpoint:
    """The host itself, unless the environment names another place."""
    address = environment.get(ENDPOINT_VARIABLE, "")
    if not address:
        return Endpoint(host)
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc or parts.path.strip("/"):
        raise ImageError(
            f"{ENDPOINT_VARIABLE} is not a valid address: `{address}`\nWrite it as https://HOST or http://HOST:PORT"
        )
    return Endpoint(parts.netloc, parts.scheme == "http", elsewhere=True)


def login_variables(tool: Tool, folder: Path, place: Endpoint, user: str, secret: str) -> dict[str, str]:
    """The variables that point a tool to the token. The token is in a file that only its owner may read."""
    logins = {place.host: {"auth": base64.b64encode(f"{user}:{secret}".encode()).decode()}}
    if tool.auth_variable == "DOCKER_CONFIG":
        return {tool.auth_variable: str(_docker_folder(folder, logins))}
    file = folder / "auth.json"
    _write(file, {"auths": logins})
    return {tool.auth_variable: str(file)}


def _docker_folder(folder: Path, logins: Mapping[str, Any]) -> Path:
    """Docker keeps its logins beside the address of its daemon. This takes over the address, but no login."""
    usual = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        config = json.loads((usual / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        config = {}
    kept = {name: config[name] for name in ("currentContext", "proxies", "cliPluginsExtraDirs") if name in config}
    _write(folder / "config.json", {**kept, "auths": logins})
    for name in ("contexts", "cli-plugins", "buildx"):
        if (usual / name).is_dir():
            (folder / name).symlink_to(usual / name)
    return folder


def _write(file: Path, content: Mapping[str, Any]) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        json.dump(content, opened)
