# SPDX-License-Identifier: Apache-2.0
"""The Pulumi provider `oci` for the local cloud."""

from collections.abc import Iterable

from components.oci.client.session import CLIENTS, Session
from components.platform.values import Properties
from localcloud.oci.plugin import functions
from localcloud.oci.plugin.rows import ROWS, ResourceTypeRow
from localcloud.oci.plugin.table import OciResource
from localcloud.plugins.plugin import LocalPlugin, must_be_local, without_endpoint_error
from provider.base.resource import Function

_OUR_NAMES = {"region": "region", "configFileProfile": "profile"}


class LocalOci(LocalPlugin[ResourceTypeRow, Session]):
    name = "oci"
    # The version of pulumi-oci whose types this follows. The engine compares it with the version a program needs.
    version = "5.5.0"
    rows = ROWS
    base = OciResource
    behaviours = "localcloud.oci.plugin.behaviours"

    def open_session(self, config: Properties) -> Session:
        session = Session.of({ours: config[key] for key, ours in _OUR_NAMES.items() if config.get(key)})
        missing = sorted(name for _, name in CLIENTS.values() if name not in session.endpoints)
        if missing:
            where = f"CLIENT_HOST_OVERRIDES names no endpoint for {', '.join(missing)}"
            raise without_endpoint_error(self.name, where)
        must_be_local(self.name, session.endpoints.values())
        return session

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        return ("region",)

    def function(self, token: str) -> Function | None:
        return functions.function(token, self.session)
