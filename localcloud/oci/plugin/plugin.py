# SPDX-License-Identifier: Apache-2.0
"""The Pulumi provider `oci` for the local cloud. Types and functions are rows of components/oci/types."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from components.oci.client.calls import call_oci
from components.oci.client.session import CLIENTS, Session
from components.oci.types import SERVED_TYPES
from components.oci.types.functions import FUNCTIONS, OciFunction
from components.oci.types.oci_resource_type import OciResourceType, camel_case
from components.platform.calls import Call, Stop
from components.platform.values import Properties
from localcloud.oci.plugin.convert import from_model
from localcloud.oci.plugin.table import OciResource
from localcloud.plugins.plugin import LocalPlugin, missing_endpoint_error, require_local_endpoints
from provider.base.resource import Function
from provider.base.wire import Engine, UrnReporter

_OUR_NAMES = {"region": "region", "configFileProfile": "profile"}


class LocalOci(LocalPlugin[OciResourceType, Session]):
    name = "oci"
    # The version of pulumi-oci whose types this follows. The engine compares it with the version a program needs.
    version = "5.5.0"
    rows = SERVED_TYPES
    base = OciResource
    behaviours = "localcloud.oci.plugin.behaviours"

    def open_session(self, config: Properties) -> Session:
        session = Session.of({ours: config[key] for key, ours in _OUR_NAMES.items() if config.get(key)})
        missing = sorted(name for _, name in CLIENTS.values() if name not in session.endpoints)
        if missing:
            where = f"CLIENT_HOST_OVERRIDES names no endpoint for {', '.join(missing)}"
            raise missing_endpoint_error(self.name, where)
        require_local_endpoints(self.name, session.endpoints.values())
        return session

    def replacing_config(self, old: Properties, new: Properties) -> Iterable[str]:
        return ("region",)

    def function(self, token: str) -> Function | None:
        return function_of(token, self.session)


_RENAMED = {"regionSubscriptions": {"status": "state"}}


def function_of(token: str, session: Callable[[], Session]) -> Function | None:
    lookup = FUNCTIONS.get(token)
    if lookup is None:
        return None
    return lambda args: call_oci_function(token, lookup, session(), args)


def call_oci_function(token: str, lookup: OciFunction, session: Session, args: Properties) -> Properties:
    call = Call("", token, token, UrnReporter(Engine(), "", frozenset()), Stop())
    operation = getattr(session.client(lookup.service), lookup.operation)
    of_tenancy = ("tenancyId", "compartmentId")
    given = [args.get(key, session.tenancy if key in of_tenancy else "") for key in lookup.arguments]
    options = dict(lookup.always) | {
        option: args[key] for option, key in lookup.options.items() if args.get(key) is not None
    }
    name = token.rsplit(":", 1)[-1]
    answer = call_oci(call, name, lambda: operation(*given, **options))
    data = answer.data
    while isinstance(data, list) and answer.headers.get("opc-next-page"):
        page = answer.headers["opc-next-page"]
        answer = call_oci(call, name, partial(operation, *given, **options, page=page))
        data = [*data, *answer.data]
    if lookup.also:
        call_oci(call, name, lambda: getattr(session.client(lookup.service), lookup.also)(*given))
    identity = "/".join([name, *map(str, given)])
    if not lookup.plural:
        return {**args, "id": identity, **from_model(data)}
    shown, filters = from_model(data), args.get("filters") or []
    if lookup.collection:
        shown = [{**shown, "items": _filter_items(shown.get("items") or [], filters)}]
    elif isinstance(shown, list):
        names = _RENAMED.get(lookup.plural, {})
        renamed = [{names.get(key, key): value for key, value in item.items()} for item in shown]
        shown = _filter_items(renamed, filters)
    return {**args, "id": identity, lookup.plural: shown}


def _filter_items(items: list[Properties], filters: list[Mapping[str, Any]]) -> list[Properties]:
    for condition in filters:
        name, values = camel_case(condition["name"]), condition["values"]
        if condition.get("regex"):
            items = [item for item in items if any(re.search(value, str(item.get(name, ""))) for value in values)]
        else:
            items = [item for item in items if str(item.get(name, "")) in values]
    return items
