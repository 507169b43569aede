# SPDX-License-Identifier: Apache-2.0
"""The Pulumi provider `oci` for the local cloud. It takes the place of the real plugin, which is not installed."""

from collections.abc import Iterable, Mapping
from importlib import import_module

from localcloud.plugin import functions
from localcloud.plugin.marker import must_be_local
from localcloud.plugin.rows import ROWS
from localcloud.plugin.table import TableResource
from provider.base.errors import ProviderError
from provider.base.resource import Function, Plugin, ProviderResource
from provider.base.values import Properties
from provider.oci.session import Session

# The version of pulumi-oci whose types this follows. The engine compares it with the version that a program needs.
VERSION = "5.5.0"
_OUR_NAMES = {"region": "region", "configFileProfile": "profile"}


def _behaviour(name: str) -> type[TableResource]:
    if not name:
        return TableResource
    module, _, class_name = name.partition(".")
    behaviour: type[TableResource] = getattr(import_module(f"localcloud.plugin.behaviours.{module}"), class_name)
    return behaviour


class LocalOci(Plugin):
    name = "oci"
    version = VERSION

    def __init__(self) -> None:
        self._configured: Session | None = None
        self._made: dict[str, ProviderResource] = {}

    def configure(self, config: Properties) -> None:
        session = Session.of({ours: config[key] for key, ours in _OUR_NAMES.items() if config.get(key)})
        must_be_local(session.endpoints)
        self._configured = session

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        return ("region",)

    def resource(self, token: str) -> ProviderResource | None:
        row = ROWS.get(token)
        if row is None:
            return None
        if token not in self._made:
            self._made[token] = _behaviour(row.behaviour)(token, row, self._session)
        return self._made[token]

    def function(self, token: str) -> Function | None:
        return functions.function(token, self._session)

    def schema(self) -> Mapping[str, object]:
        resources: dict[str, object] = {token: {"inputProperties": {}, "properties": {}} for token in ROWS}
        return {"name": self.name, "version": self.version, "resources": resources}

    def _session(self) -> Session:
        if self._configured is None:
            raise ProviderError("The provider `oci` was not configured.", "This is a bug of the engine or the host.")
        return self._configured
