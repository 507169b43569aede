# SPDX-License-Identifier: Apache-2.0
"""Checks that an endpoint is a local cloud: it is on this machine, and it says so. The plugin calls no other."""

import http.client
import ipaddress
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from provider.base.errors import ProviderError
from provider.oci.session import CLIENTS

_PATH = "/.trainyard"
_NAME = "trainyard-local"
# Long enough for a busy machine.
_SECONDS = 60.0


def must_be_local(endpoints: Mapping[str, str]) -> None:
    """Raises unless every endpoint is a local cloud. `endpoints` maps client classes, as provider.oci.session does."""
    missing = sorted(name for _, name in CLIENTS.values() if name not in endpoints)
    if missing:
        raise ProviderError(
            f"This `oci` plugin is for the local cloud only, and CLIENT_HOST_OVERRIDES names no endpoint for "
            f"{', '.join(missing)}.",
            "For the local cloud: `trainyard cloud start`, then `eval $(trainyard cloud env)`. For a real account use "
            "Pulumi's own plugin: `pulumi plugin install resource oci`, with no other `pulumi-resource-oci` on PATH.",
        )
    for url in sorted(set(endpoints.values())):
        _check(url)


def _check(url: str) -> None:
    parts = urlsplit(url)
    if not _is_loopback(parts.hostname or ""):
        raise ProviderError(
            f"{url} is not on this machine; this `oci` plugin calls only the local cloud.",
            "For a real account use Pulumi's own plugin: `pulumi plugin install resource oci`.",
        )
    if _marker(url, parts.hostname or "", parts.port or 80) != _NAME:
        raise ProviderError(
            f"The server at {url} is not trainyard's local cloud; the plugin did not call it.",
            "`trainyard cloud status` shows where the local cloud runs. `trainyard cloud env` prints the variables "
            "that point to it.",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _marker(url: str, host: str, port: int) -> str | None:
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", _PATH)
        answer = json.loads(connection.getresponse().read(65536))
    except ConnectionError as error:
        raise ProviderError(
            f"The local cloud does not answer at {url}: {error}", "Start it: `trainyard cloud start`."
        ) from None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    name = answer.get("cloud") if isinstance(answer, dict) else None
    return str(name) if name else None
