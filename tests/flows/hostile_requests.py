# SPDX-License-Identifier: Apache-2.0
"""Requests to every operation of the local cloud, made from the SDK's own models and clients. Most of a request is
valid; one or more fields, parts of the path, query parameters or headers are malformed or hostile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from localcloud.oci import sdk, services
from localcloud.oci.operations import ApiOperation

ROWS = services.service_operations()
_CLIENTS = (
    "core/virtual_network_client", "identity/identity_client", "artifacts/artifacts_client",
    "work_requests/work_request_client", "data_science/data_science_client", "limits/limits_client",
    "vault/vaults_client", "secrets/secrets_client", "logging/logging_management_client",
    "loggingingestion/logging_client", "loggingsearch/log_search_client", "monitoring/monitoring_client",
    "object_storage/object_storage_client",
)  # fmt: skip
# Query parameters and headers that any operation is sent, whether or not the SDK lists them for it.
_MORE_QUERY = ("compartmentId", "limit", "page", "sortBy", "sortOrder", "fields", "x-y", "compartmentIdInSubtree")
_MORE_HEADERS = (
    "if-match", "if-none-match", "opc-retry-token", "opc-request-id", "range", "content-md5", "content-disposition",
    "content-type", "expect", "opc-meta-x", "accept-encoding", "transfer-encoding-x",
)  # fmt: skip
_OWN_FIELDS = ("image", "entrypoint", "cmd", "layers", "environment", "standBy", "resource", "publicKey", "operations")
_MOST_DEPTH = 4
_MOST_SHOWN = 3000


@dataclass(frozen=True)
class Raw:
    """Text that is put into the JSON body unchanged, valid JSON or not."""

    text: str


@dataclass(frozen=True)
class Real:
    """The identifier of an existing resource, chosen when the request is sent. `place` is the name of the field or
    parameter: if a resource of the kind that it names exists, one of those is chosen."""

    number: int
    place: str = ""

    def among(self, real: list[str]) -> str:
        if self.place == "compartmentId" and not self.number % 3:
            return real[-1]  # the tenancy: some resources live only there
        kind = _KINDS.get(self.place) or self.place.removesuffix("s").removesuffix("Id").lower()
        fitting = [one for one in real if f".{kind}" in one or f"science{kind}" in one] if kind else []
        candidates = fitting or real
        return candidates[self.number % len(candidates)]


# Names of fields and parameters that are not named after the kind of resource that they refer to.
_KINDS = {
    "rtId": "routetable", "igId": "internetgateway", "dhcpId": "dhcpoptions", "secretId": "vaultsecret",
    "imageId": "containerimage", "repositoryId": "containerrepo", "networkEntityId": "servicegateway",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Hostile:
    """One request. The identifiers of existing resources are filled in when it is sent."""

    row: ApiOperation
    path: tuple[Any, ...]
    query: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Any
    is_administrator: bool

    def __repr__(self) -> str:
        parts = (self.path, dict(self.query), dict(self.headers), self.body, self.is_administrator)
        return f"{self.row.name} {parts!r}"[:_MOST_SHOWN]

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """How Hypothesis prints it. Without this method, it prints a data class field by field."""
        printer.text(repr(self))

    def target(self, real: list[str]) -> str:
        values = iter(self.path)
        path = re.sub(r"\{\w+\}", lambda _: _spelled(next(values), real), self.row.path)
        query = "&".join(f"{quote(name, safe='')}={_spelled(value, real)}" for name, value in self.query.items())
        return f"{path}?{query}" if query else path

    def content(self, real: list[str]) -> bytes:
        if self.row.streams:
            return str(self.body).encode(errors="replace")
        if not self.row.writes or self.row.method == "DELETE":
            return b""
        return _written(self.body, real).encode("utf-8", "surrogatepass")


def _spelled(value: Any, real: list[str]) -> str:
    if isinstance(value, Raw):
        return value.text
    text = value.among(real) if isinstance(value, Real) else str(value)
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def _written(value: Any, real: list[str]) -> str:
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, Real):
        return json.dumps(value.among(real))
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_written(item, real)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(item, real) for item in value) + "]"
    return json.dumps(value, ensure_ascii=isinstance(value, str) and "\ud800" in value)


_PIECES = st.sampled_from(
    ["a", "9", "'", '"', "|", " ", "*", "(", "[", "{", "\\", "%", "é", ",", "a.", "=", "all {", "\n"]
)
_LONG = st.builds(lambda piece, times: piece * times, _PIECES, st.sampled_from([2, 300, 5_000]))
_TEXTS = st.sampled_from([
    "", "\x00", "a\x00b", "\ud800", "\udfff\ud800", "\u202e", "\r\nHost: x", "../..", "/etc/passwd", "..", ".", "%",
    "%00", "%FF", "ocid1.x", "ocid1.vcn.oc1..", "'; drop table resources; --", '" or 1=1', "$(id)", "`id`",
    "6 accept\nflush ruleset", 'include "/etc/passwd"', "all", "6", "-1", "1e999", "NaN", "null", "true", "0.0.0.0/0",
    "10.0.0.0/33", "::/0", "999.1.1.1", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00Z",
    "\u0663", "sha256:../x", "a" * 256, "*", "**a*", "allow group x to manage all-resources in tenancy",
    "all {resource.type = 'x'}", "search \"a/b/c\" | where data = '*a*'", "search \"x\" | where source = 'a",
    "m[1m].mean()", 'm[1m]{a = "b"}.groupBy(a).max()', "YQ==", "bytes=0-", "bytes=-1", "iad.ocir.io/trainyardlocal/x:1",
    "iad.ocir.io/trainyardlocal/../x:1@sha256:0", "DEFAULT", "Enabled", "ACTIVE",
])  # fmt: skip
_TEXT = _TEXTS | st.text(max_size=20) | _LONG
_NUMBERS = st.sampled_from([0, -1, 1, 2**31, 2**63 - 1, -(2**63), 65536, 10**15]) | st.integers(-10, 300)
_RAW = st.sampled_from(
    [Raw(text) for text in (
        "1e999", "-1e999", "NaN", "-Infinity", "9" * 5000, str(2**63), "1e308", "1e-400", "-0", "[" * 3000, "{}x", "",
        '"\\ud800"', '"\\ud800\\udc00"', "'a'", "{\"a\":1,\"a\":2}", "tru", "\"\x01\"",
    )]
)  # fmt: skip
_ANYTHING: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | _NUMBERS
    | _TEXT
    | _RAW
    | st.just([])
    | st.just({})
    | st.just([[]])
    | st.just({"a": [{}]})
)
_REAL = st.integers(0, 60).map(Real)
_FITTING: Mapping[str, st.SearchStrategy[Any]] = {
    "int": _NUMBERS,
    "float": _NUMBERS | st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "datetime": st.sampled_from(["2026-01-01T00:00:00Z", "2026-11-22T10:00:00.5+01:00", "1970-01-01T00:00:00Z"]),
    "object": _ANYTHING,
}
_NAMES = st.sampled_from(["name", "other", "a-b_c.d", "x" * 255])
_NAMED: Mapping[str, st.SearchStrategy[Any]] = {
    "cidrBlock": st.sampled_from([f"10.{number}.0.0/24" for number in range(9)]),
    "cidrBlocks": st.sampled_from([f"10.{number}.0.0/16" for number in range(9)]),
    "source": st.just("0.0.0.0/0"),
    "destination": st.just("0.0.0.0/0"),
    "protocol": st.sampled_from(["all", "6", "17", "1"]),
    "namespaceName": st.just("trainyardlocal"),
    "bucketName": st.just("name"),
    "objectName": _NAMES,
    "namespace": st.just("trainyardlocal"),
    "destinationNamespace": st.just("trainyardlocal"),
    "destinationRegion": st.just("us-ashburn-1"),
    "destinationBucket": st.just("name"),
    "bucket": st.just("name"),
    "statements": st.sampled_from(
        [
            "allow group scientists to read buckets in tenancy",
            "allow group scientists to read buckets in compartment training",
        ]
    ),
    "matchingRule": st.just("all {resource.type = 'datasciencejobrun'}"),
    "searchQuery": st.sampled_from(
        ["search \"x\" | where data = '*a*b*'", 'search "a/b", "c" | sort by datetime | limit 1']
    ),
    "query": st.sampled_from(["m[1m].mean()", 'm[5m]{a =~ "b*|*c", d = "e"}.groupBy(a).max()']),
    "shapeName": st.just("VM.Standard2.1"),
    "shape": st.just("VM.Standard2.1"),
    "image": st.just("iad.ocir.io/trainyardlocal/team/x:1"),
    "content": st.just("YQ=="),
    "limit": st.integers(1, 1000).map(str),
    "sortOrder": st.sampled_from(["ASC", "DESC"]),
}


def _text(place: str) -> st.SearchStrategy[Any]:
    """A valid value for this place."""
    if place in _NAMED:
        return _NAMED[place]
    if place.endswith(("Id", "Ids")) or place == "id":
        return st.integers(0, 60).map(lambda number: Real(number, place))
    return _NAMES


_TEN: st.SearchStrategy[int] = st.integers(0, 9)


def _now_and_then(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 30)) == 30


@st.composite
def _values(draw: st.DrawFn, type_name: str, service: str, depth: int, place: str) -> Any:
    if _now_and_then(draw) or depth > _MOST_DEPTH:
        return draw(_ANYTHING)
    if match := re.fullmatch(r"list\[(.+)\]", type_name):
        return [draw(_values(match[1], service, depth + 1, place)) for _ in range(draw(st.integers(0, 2)))]
    if match := re.fullmatch(r"dict\(str, (.+)\)", type_name):
        return {draw(_TEXT): draw(_values(match[1], service, depth + 1, place)) for _ in range(draw(st.integers(0, 2)))}
    if type_name == "str":
        return draw(_text(place) if draw(_TEN) else _TEXT)
    if type_name in _FITTING:
        return draw(_FITTING[type_name])
    return draw(_models(service, type_name, depth + 1))


@st.composite
def _models(draw: st.DrawFn, service: str, name: str, depth: int = 0) -> dict[str, Any]:
    model = sdk.sdk_model(service, name)
    if model.subtypes and not _now_and_then(draw):
        kind: str = draw(st.sampled_from(sorted(model.subtypes)))
        if model.subtypes[kind] != name:
            return {**draw(_models(service, model.subtypes[kind], depth)), model.discriminator: kind}
    body: dict[str, Any] = {}
    for field in model.fields.values():
        # Required fields are left out only sometimes.
        if (field.required and _now_and_then(draw)) or (not field.required and draw(_TEN) > 1):
            continue
        if field.allowed and not _now_and_then(draw):
            body[field.wire] = draw(st.sampled_from(sorted(field.allowed)))
        else:
            body[field.wire] = draw(_values(field.type, service, depth, field.wire))
    if _now_and_then(draw):
        body[draw(_TEXT)] = draw(_ANYTHING)
    return body


_JUNK = st.sampled_from(
    [Raw(text) for text in ("%FF", "%00", "%", "%zz", "%C3", "..", "%2e%2e", "%2F", "%ED%A0%80", "a%0Ab", "+")]
)
_STRANGE = (
    _REAL
    | _JUNK
    | st.sampled_from(["x", "trainyardlocal", "name", "\ud800", "é" * 600, "a/b/", "/"])
    | _TEXTS.filter(bool)
)
_HEADER_VALUES = st.sampled_from([
    "", "*", "x", "a" * 5000, "bytes=0-0", "bytes=5-2", f"bytes={'9' * 5000}-", f"bytes=-{'9' * 30}", "bytes=\xb2-",
    "\xff\xfe", 'attachment; filename="../../x"', "filename=" * 300, "100-continue", "gzip", "%FF", "a\tb", "true",
    "application/x-www-form-urlencoded", "1B2M2Y8AsgTpgAmY7PhCfg==",
])  # fmt: skip


@st.composite
def hostile(draw: st.DrawFn, rows: list[ApiOperation]) -> Hostile:
    """One request for one of these operations."""
    row = draw(st.sampled_from(rows))
    path = tuple(draw(_text(place) if draw(_TEN) else _STRANGE) for place in re.findall(r"\{(\w+)\}", row.path))
    query, headers = parameters(row)
    asked = draw(st.lists(st.sampled_from(sorted({*query, *_MORE_QUERY})), max_size=3, unique=True))
    asked += ["compartmentId"] if row.name.startswith("List") and draw(_TEN) else []
    said = draw(st.lists(st.sampled_from(sorted({*headers, *_MORE_HEADERS})), max_size=2, unique=True))
    return Hostile(
        row, path, {name: draw(_text(name) if draw(_TEN) > 2 else _JUNK | _TEXT | _NUMBERS) for name in asked},
        {name: draw(_HEADER_VALUES) for name in said}, draw(_body(row)), draw(_TEN) > 2,
    )  # fmt: skip


def _body(row: ApiOperation) -> st.SearchStrategy[Any]:
    if row.streams:
        return _TEXT
    if row.details:
        return _models(row.service, row.details) if row.service else _ANYTHING
    pushed = st.fixed_dictionaries(
        {"image": _NAMED["image"] | _TEXT}, optional=dict.fromkeys(_OWN_FIELDS[1:], _ANYTHING)
    )
    return _ANYTHING | pushed


@cache
def parameters(row: ApiOperation) -> tuple[frozenset[str], frozenset[str]]:
    """The query parameters and headers of an operation in the SDK's client."""
    return _of_clients().get((row.method, _form(row.path)), (frozenset(), frozenset()))


@cache
def _of_clients() -> Mapping[tuple[str, str], tuple[frozenset[str], frozenset[str]]]:
    return {found[0]: found[1] for client in _CLIENTS for found in _of_client(client)}


def _of_client(client: str) -> Iterator[tuple[tuple[str, str], tuple[frozenset[str], frozenset[str]]]]:
    source = (sdk._sdk_package() / f"{client}.py").read_text()
    base = re.search(r"'base_path': '([^']+)'", source)
    prefix = base[1].rstrip("/") if base else ""
    for text in source.split("\n    def "):
        place = re.search(r'resource_path = "([^"]+)"\s+method = "(\w+)"', text)
        if place:
            query, headers = (frozenset(_keys(text, name)) for name in ("query_params", "header_params"))
            yield (place[2], _form(prefix + place[1])), (query, headers)


def _keys(text: str, name: str) -> list[str]:
    block = re.search(rf"{name} = \{{(.*?)\n        \}}", text, re.DOTALL)
    return re.findall(r'\n            "([^"]+)":', block[1]) if block else []


def _form(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path).rstrip("/")
