# SPDX-License-Identifier: Apache-2.0
"""A Pulumi provider for the local cloud, from a platform's table of types. It replaces the real plugin."""

from __future__ import annotations

import http.client
import ipaddress
import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import ClassVar, Generic, TypeVar
from urllib.parse import urlsplit

from components.platform.calls import ProviderError
from components.platform.values import Properties
from components.values.resource_types import PluginType
from localcloud.plugins.engine import writes_for_programs
from localcloud.plugins.resource_table import TableResource
from provider.base.resource import Plugin, ProviderResource

Row = TypeVar("Row", bound=PluginType)
Session = TypeVar("Session")
_PATH = "/.trainyard"
_NAME = "trainyard-local"
# Long enough for a busy machine.
_SECONDS = 60.0


class LocalPlugin(Plugin, Generic[Row, Session]):
    """The common part of all plugins. Each platform has its session and its table of rows."""

    rows: Mapping[str, Row]
    # The class for resources of most rows, and the package with the classes that rows name.
    base: ClassVar[type[TableResource]]
    behaviours: ClassVar[str]

    def __init__(self) -> None:
        self._configured: Session | None = None
        self._made: dict[str, ProviderResource] = {}

    @abstractmethod
    def open_session(self, config: Properties) -> Session:
        """The session for this configuration. Raises if an endpoint is not a local cloud."""

    def configure(self, config: Properties) -> None:
        self._configured = self.open_session(config)

    def resource(self, token: str) -> ProviderResource | None:
        row = self.rows.get(token)
        if row is None:
            return None
        if token not in self._made:
            self._made[token] = self._class_of(row.behaviour)(token, row, self.session)
        return self._made[token]

    def schema(self) -> Mapping[str, object]:
        resources: dict[str, object] = {token: {"inputProperties": {}, "properties": {}} for token in self.rows}
        return {"name": self.name, "version": self.version, "resources": resources}

    def diffs_for_people(self) -> bool:
        return not writes_for_programs()

    def session(self) -> Session:
        if self._configured is None:
            raise ProviderError(
                f"The provider `{self.name}` was not configured.", "This is a bug of the engine or the host."
            )
        return self._configured

    def _class_of(self, behaviour: str) -> type[TableResource]:
        if not behaviour:
            return self.base
        module, _, class_name = behaviour.partition(".")
        named: type[TableResource] = getattr(import_module(f"{self.behaviours}.{module}"), class_name)
        return named


def require_local_endpoints(plugin: str, urls: Iterable[str]) -> None:
    """Raises unless all endpoints are local clouds. `plugin`: the name of the plugin that would call them."""
    for url in sorted(set(urls)):
        parts = urlsplit(url)
        if not _is_loopback(parts.hostname or ""):
            raise ProviderError(
                f"{url} is not on this machine; this `{plugin}` plugin calls only the local cloud.",
                f"For a real account use Pulumi's own plugin: `pulumi plugin install resource {plugin}`.",
            )
        if _read_marker_name(url, parts.hostname or "", parts.port or 80) != _NAME:
            raise ProviderError(
                f"The server at {url} is not trainyard's local cloud; the plugin did not call it.",
                "`trainyard cloud status` shows where the local cloud runs. `trainyard cloud env` prints the variables "
                "that point to it.",
            )


def missing_endpoint_error(plugin: str, what: str) -> ProviderError:
    """The error of a missing endpoint. `what`: which one, and where it should be set."""
    return ProviderError(
        f"This `{plugin}` plugin is for the local cloud only, and {what}.",
        "For the local cloud: `trainyard cloud start`, then `eval $(trainyard cloud env)`. For a real account use "
        f"Pulumi's own plugin: `pulumi plugin install resource {plugin}`, with no other `pulumi-resource-{plugin}` on "
        "PATH.",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_marker_name(url: str, host: str, port: int) -> str | None:
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
