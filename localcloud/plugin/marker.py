# SPDX-License-Identifier: Apache-2.0
"""Checks that an endpoint is a local cloud: it is on this machine, and it says so. A plugin calls no other."""

import http.client
import ipaddress
import json
from collections.abc import Iterable
from urllib.parse import urlsplit

from components.platform.calls import ProviderError

_PATH = "/.trainyard"
_NAME = "trainyard-local"
# Long enough for a busy machine.
_SECONDS = 60.0


def must_be_local(plugin: str, urls: Iterable[str]) -> None:
    """Raises unless every endpoint is a local cloud. `plugin` is the name of the plugin that would call them."""
    for url in sorted(set(urls)):
        _check(plugin, url)


def without_endpoint_error(plugin: str, what: str) -> ProviderError:
    """`what` says which endpoint is missing, and where it should be named."""
    return ProviderError(
        f"This `{plugin}` plugin is for the local cloud only, and {what}.",
        "For the local cloud: `trainyard cloud start`, then `eval $(trainyard cloud env)`. For a real account use "
        f"Pulumi's own plugin: `pulumi plugin install resource {plugin}`, with no other `pulumi-resource-{plugin}` on "
        "PATH.",
    )


def _check(plugin: str, url: str) -> None:
    parts = urlsplit(url)
    if not _is_loopback(parts.hostname or ""):
        raise ProviderError(
            f"{url} is not on this machine; this `{plugin}` plugin calls only the local cloud.",
            f"For a real account use Pulumi's own plugin: `pulumi plugin install resource {plugin}`.",
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
