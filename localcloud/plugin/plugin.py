# SPDX-License-Identifier: Apache-2.0
"""A Pulumi provider for the local cloud, made from the table of a cloud. It takes the place of the real plugin."""

from abc import abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, Generic, TypeVar

from components.platform.calls import ProviderError
from components.platform.values import Properties
from localcloud.plugin.rows import TypeRow
from localcloud.plugin.table import TableResource
from provider.base.resource import Plugin, ProviderResource

Row = TypeVar("Row", bound=TypeRow)
Session = TypeVar("Session")


class LocalPlugin(Plugin, Generic[Row, Session]):
    """What the plugins of all clouds share. A cloud says how its session is made, and has a table of rows."""

    rows: Mapping[str, Row]
    # What makes a resource of a row, and the folder with the classes that rows name.
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
