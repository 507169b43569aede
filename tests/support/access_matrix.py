# SPDX-License-Identifier: Apache-2.0
"""Finds every field and parameter of every call that can hold a reference, in the operations of the local cloud and in
Oracle's own models.

Only sample values of each kind are listed by hand, so new operations and fields are found automatically.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from catalog.nested import walk_texts
from catalog.tables import table
from localcloud.oci import sdk, services
from localcloud.oci.operations import ApiOperation
from localcloud.oci.references import kinds_of, reference_rows
from localcloud.oci.services.network.gateways import gateway_services
from tests.support.two_teams import Team, now

ROWS = services.service_operations()
OPAQUE: Mapping[str, str] = table("references")["opaque"]
_CLIENTS = {
    "core": "core/virtual_network_client", "identity": "identity/identity_client",
    "artifacts": "artifacts/artifacts_client", "work_requests": "work_requests/work_request_client",
    "data_science": "data_science/data_science_client", "limits": "limits/limits_client",
    "vault": "vault/vaults_client", "secrets": "secrets/secrets_client",
    "logging": "logging/logging_management_client", "loggingingestion": "loggingingestion/logging_client",
    "loggingsearch": "loggingsearch/log_search_client", "monitoring": "monitoring/monitoring_client",
    "object_storage": "object_storage/object_storage_client",
}  # fmt: skip
_REFERS = re.compile(r"(Ids?|[a-z]-id|[Oo]cids?)$|^id$")
_CONTAINER = re.compile(r"list\[(.+)\]|dict\(str, (.+)\)")
_PLAIN: Mapping[str, Any] = {
    "str": "x", "int": 1, "float": 1.0, "bool": True, "datetime": "2026-01-01T00:00:00Z", "object": {},
}  # fmt: skip
# Parameters without which the handler would do nothing.
_ALWAYS: Mapping[str, Mapping[str, str]] = {
    "ListFaultDomains": {"availabilityDomain": "TRYD:US-ASHBURN-AD-1"},
    "UploadPart": {"uploadPartNum": "1"},
}
_TEXTS: Mapping[str, str] = {"protocol": "6", "cidrBlock": "10.9.0.0/16", "searchQuery": "", "query": "x[1m].mean()"}


@dataclass(frozen=True)
class Spot:
    """One field or parameter of one call that can hold a reference."""

    operation: ApiOperation
    source: str
    field: str

    @property
    def name(self) -> str:
        return self.field.rpartition(".")[2].removesuffix("[]")

    @property
    def kinds(self) -> list[str]:
        """The kinds of resource that it may refer to; none for an opaque value."""
        return kinds_of(self.name).split()

    @property
    def only_narrows(self) -> bool:
        """Whether it only filters a list, which shows no more than the caller may see anyway."""
        named = " ".join(reference_rows(self.operation.name))
        own = reference_rows(self.operation.name).get("own", "query.compartmentId")
        return self.source == "query" and f"query.{self.name}" not in f"{named} {own}"

    def __str__(self) -> str:
        return f"{self.operation.name} {self.source}.{self.field}"


def spots() -> list[Spot]:
    """The places whose names look like references, and those that the table names."""
    return [spot for row in ROWS if row.service in _CLIENTS for spot in _spots(row)]


def _spots(row: ApiOperation) -> Iterator[Spot]:
    listed = {place for places in reference_rows(row.name) for place in re.split(r" [|&>+] ", places)}
    listed |= set(re.split(r" [|&>+] ", reference_rows(row.name).get("own", "")))
    for source, fields in fields_of(row).items():
        for field in fields:
            name = field.rpartition(".")[2].removesuffix("[]")
            if source == "path" or _REFERS.search(name) or f"{source}.{field}" in listed:
                yield Spot(row, source, field)


def fields_of(row: ApiOperation) -> Mapping[str, list[str]]:
    source = _function(row)
    body = sorted(set(_body_fields(row.service, row.details))) if row.details else []
    own = reference_rows(row.name).get("own", "").split(" ")
    body += [place.removeprefix("body.") for place in own if place.startswith("body.")]
    return {
        "path": re.findall(r"\{(\w+)\}", row.path),
        "query": _keys(source, "query_params"),
        "header": _keys(source, "header_params"),
        "body": list(dict.fromkeys(body)),
    }


@cache
def _client(service: str) -> Mapping[str, str]:
    """The source of each method of a client."""
    text = (sdk._sdk_package() / f"{_CLIENTS[service]}.py").read_text()
    methods = re.split(r"\n    def (\w+)\(self", text)
    return dict(zip(methods[1::2], methods[2::2], strict=True))


def _function(row: ApiOperation) -> str:
    return _client(row.service).get(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", row.name).lower(), "")


def _keys(source: str, variable: str) -> list[str]:
    found = re.search(rf"{variable} = \{{(.*?)\n        \}}", source, re.DOTALL)
    return re.findall(r'^\s+"([^"]+)":', found[1], re.MULTILINE) if found else []


def _body_fields(service: str, name: str, before: str = "", above: tuple[str, ...] = ()) -> Iterator[str]:
    """The path of every text in a model, of each of its subtypes."""
    for model in _with_subtypes(service, name):
        for field in model.fields.values():
            inner, mark = _inner(field.type)
            place = f"{before}{field.wire}{mark}"
            if inner == "str":
                yield place
            elif inner not in _PLAIN and inner not in above and mark != "{}":
                yield from _body_fields(service, inner, f"{place}.", (*above, name))


def _inner(type_name: str) -> tuple[str, str]:
    match = _CONTAINER.fullmatch(type_name)
    if match is None:
        return type_name, ""
    return (match[1], "[]") if match[1] else (match[2], "{}")


def _with_subtypes(service: str, name: str) -> list[sdk.Model]:
    model = sdk.sdk_model(service, name)
    return [model, *(sdk.sdk_model(service, other) for other in model.subtypes.values() if other != name)]


@dataclass(frozen=True)
class Question:
    """One request, and the value at the place that is tested."""

    method: str
    target: str
    body: Any
    headers: Mapping[str, str]
    sent: tuple[str, ...]


ELSEWHERE = ("query", "body", "header")


def question(
    row: ApiOperation, whose: Team, spot: Spot | None = None, value: Any = None, elsewhere: Iterable[str] = ()
) -> Question:
    """A call with values of one team, and another value at one place.

    `elsewhere`: further places that this call does not read, and that have the team's own compartment nevertheless: the
    query of a call that has it in its body or path, the body of a call that has none, a header.
    """

    def at(source: str, field: str) -> Any:
        name = field.rpartition(".")[2].removesuffix("[]")
        if spot and (spot.source, spot.field) == (source, field):
            return value
        return of_kind(whose, kinds_of(name).partition(" ")[0]) or _opaque(whose, name)

    path = re.sub(r"\{(\w+)\}", lambda found: quote(str(at("path", found[1])), safe=""), row.path)
    query = dict(_ALWAYS.get(row.name, {}))
    query |= {name: str(at("query", name)) for name in _asked(row, spot)}
    body = _body(row, at, spot)
    headers = {spot.field: str(value)} if spot and spot.source == "header" else {}
    own = {"compartmentId": whose.compartment}
    if "header" in elsewhere:
        headers |= {**own, "opc-compartment-id": whose.compartment}
    if "query" in elsewhere and "compartmentId" not in _keys(_function(row), "query_params"):
        query |= own
    if "body" in elsewhere and row.method in ("GET", "DELETE"):
        body = own
    text = "&".join(f"{name}={quote(part, safe='')}" for name, part in query.items())
    sent = tuple(walk_texts(value)) if spot else ()
    return Question(row.method, f"{path}?{text}" if text else path, body, headers, sent)


def _asked(row: ApiOperation, spot: Spot | None) -> list[str]:
    """The query parameters of a call: its own compartment, those that the table names, and the tested place."""
    known = _keys(_function(row), "query_params")
    listed = " ".join((*reference_rows(row.name), *reference_rows(row.name).values()))
    wanted = [name for name in known if name in ("compartmentId", "uploadId") or f"query.{name}" in listed]
    if "query.secretName" in listed:
        wanted.append("vaultId")
    if spot and spot.source == "query" and spot.name in ("vnicId",):
        wanted.remove("subnetId")
    elif "subnetId" in wanted and "vnicId" in wanted:
        wanted.remove("vnicId")
    return list(dict.fromkeys([*wanted, *([spot.field] if spot and spot.source == "query" else [])]))


def _body(row: ApiOperation, at: Any, spot: Spot | None) -> Any:
    if row.name == "PushContainerImage":
        return {"image": at("body", "image")}
    if row.method not in ("POST", "PUT"):
        return None
    if not row.details:
        return {}
    wanted = spot.field if spot and spot.source == "body" else ""
    return _filled(row.service, row.details, "", wanted, at)


def _filled(service: str, name: str, before: str, wanted: str, at: Any) -> dict[str, Any]:
    """A model with its required fields only, and the wanted field."""
    model = _model_for(service, name, before, wanted)
    made = {}
    for field in model.fields.values():
        inner, mark = _inner(field.type)
        place = f"{before}{field.wire}{mark}"
        beside = inner == "str" and kinds_of(field.wire) and wanted.rpartition(".")[0] == before.rstrip(".") != wanted
        if not field.required and not wanted.startswith(place) and not (wanted and beside):
            continue
        made[field.wire] = _value(service, field, inner, mark, place, wanted, at)
    base = sdk.sdk_model(service, name)
    if model.name != name:
        made[base.discriminator] = next(key for key, other in base.subtypes.items() if other == model.name)
    return made


def _value(service: str, field: sdk.Field, inner: str, mark: str, place: str, wanted: str, at: Any) -> Any:
    if mark == "{}":
        return {"x": "x"}
    if inner not in _PLAIN:
        whole = place == wanted  # the item itself is the reference
        found = at("body", place) if whole else _filled(service, inner, f"{place}.", wanted, at)
        return [found] if mark else found
    if field.allowed:
        found = sorted(field.allowed)[0]
    elif inner == "str":
        found = at("body", place)
    else:
        found = _PLAIN[inner]
    return [found] if mark else found


def _model_for(service: str, name: str, before: str, wanted: str) -> sdk.Model:
    """The subtype that has the wanted field, else the first."""
    models = _with_subtypes(service, name)
    field = wanted.removeprefix(before).split(".")[0].removesuffix("[]") if wanted.startswith(before) else ""
    having = [model for model in models if field in model.fields]
    return next(iter([*having[1:], *having, *models[1:], *models]))


def of_kind(whose: Team, kind: str) -> Any:
    """A team's resource of a kind, as a request refers to it; None if a value of this kind is no reference."""
    made = {
        "copy-destination": whose.things.get("bucket"), "pushed-image": whose.things.get("image-address"),
        "searched-scope": f'search "{whose.compartment}"', "named-secret": whose.mark,
        "posted-metric": {
            "compartmentId": whose.compartment, "namespace": "two_teams", "name": "x", "dimensions": {"a": "b"},
            "datapoints": [{"timestamp": now(), "value": 1.0}],
        },
    }  # fmt: skip
    return made.get(kind) or whose.things.get(kind)


def _opaque(whose: Team, name: str) -> Any:
    known = {
        "namespaceName": "trainyardlocal", "objectName": whose.mark, "uploadId": whose.things.get("upload"),
        "vaultId": f"vault-{whose.mark}", "fingerprint": whose.things.get("fingerprint"),
        "serviceId": gateway_services()[0]["id"], **_TEXTS,
    }  # fmt: skip
    return known.get(name) or "x"
