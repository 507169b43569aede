# SPDX-License-Identifier: Apache-2.0
"""Seams are places where two programs may parse one request differently. Each function here rewrites a valid request at
such a place, by random draws.

A request is drawn with two values for what it names: one that its caller may change, and one of another user. If a
parser uses the wrong one, a resource of the other user changes.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

Draw = random.Random


@dataclass(frozen=True)
class Asked:
    """A request before it is signed. `others`: values of another user, by the name of the parameter or field."""

    what: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Any = None
    raw: bytes | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    seams: tuple[str, ...] = ()
    is_chunked: bool = False

    @property
    def target(self) -> str:
        query = "&".join(f"{quote(name, safe='%')}={quote(value, safe='%')}" for name, value in self.query)
        return f"{self.path}?{query}" if query else self.path

    @property
    def content(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.body is None else json.dumps(self.body).encode()


Seam = Callable[[Draw, Asked], Asked]


def _other(draw: Draw, asked: Asked) -> tuple[str, str]:
    return draw.choice(sorted(asked.others.items())) if asked.others else ("x", "x")


def parameter_twice(draw: Draw, asked: Asked) -> Asked:
    name, value = draw.choice(asked.query) if asked.query else _other(draw, asked)
    twin = (
        draw.choice([name, name.upper(), quote(name), f"%{ord(name[0]):02x}{name[1:]}"]),
        asked.others.get(name, "x"),
    )
    pairs = [*asked.query, twin] if draw.random() < 0.5 else [twin, *asked.query]
    return replace(asked, query=tuple(pairs) if (name, value) in asked.query else ((name, value), *pairs))


def parameter_added(draw: Draw, asked: Asked) -> Asked:
    """Repeats a parameter of the path or body in the query, with the value of another user."""
    return replace(asked, query=(*asked.query, _other(draw, asked)))


def field_added(draw: Draw, asked: Asked) -> Asked:
    """Repeats a parameter of the path or query in the body, with the value of another user."""
    name, value = _other(draw, asked)
    return replace(asked, body={**asked.body, name: value} if isinstance(asked.body, dict) else {name: value})


def field_twice(draw: Draw, asked: Asked) -> Asked:
    """Repeats a key of the JSON body, in the same spelling or with an escape."""
    if not isinstance(asked.body, dict) or not asked.body:
        return asked
    name = draw.choice(sorted(asked.body))
    twin = json.dumps(asked.others.get(name, "x"))
    spelled = draw.choice([f'"{name}"', f'"\\u{ord(name[0]):04x}{name[1:]}"'])
    rest = json.dumps(asked.body)
    text = f"{{{spelled}: {twin}, {rest[1:]}" if draw.random() < 0.5 else f"{rest[:-1]}, {spelled}: {twin}}}"
    return replace(asked, raw=text.encode())


def field_odd(draw: Draw, asked: Asked) -> Asked:
    """Replaces a value by one that a parser may treat as missing."""
    if not isinstance(asked.body, dict) or not asked.body:
        return asked
    name = draw.choice(sorted(asked.body))
    value = draw.choice([None, "", 0, False, [], {}, [asked.body[name]], {"id": asked.body[name]}, "\x00", " "])
    return replace(asked, body={**asked.body, name: value})


def body_encoded(draw: Draw, asked: Asked) -> Asked:
    text = asked.content.decode(errors="replace")
    coded = draw.choice(
        [text.encode("utf-8-sig"), text.encode("utf-16"), text.encode("utf-16-be"), text.encode("utf-7"),
         text.encode("utf-32"), gzip.compress(text.encode()), text.encode() + b"\x00", b"\xc0\xaf" + text.encode()]
    )  # fmt: skip
    headers = asked.headers if draw.random() < 0.5 else (*asked.headers, ("content-encoding", "gzip"))
    return replace(asked, raw=coded, headers=headers)


def form_beside(draw: Draw, asked: Asked) -> Asked:
    """A body that a parser of JSON and a parser of forms understand differently."""
    name, value = _other(draw, asked)
    kind = draw.choice(
        ["application/x-www-form-urlencoded", "multipart/form-data; boundary=B", "Multipart/Form-Data; boundary=B",
         "text/plain", "application/json; charset=utf-16", "application/xml", "APPLICATION/JSON"]
    )  # fmt: skip
    part = f'\r\n--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n--B--'
    raw = asked.content + part.encode() if draw.random() < 0.5 else asked.raw
    return replace(asked, headers=(*_without(asked.headers, "content-type"), ("content-type", kind)), raw=raw)


def header_twice(draw: Draw, asked: Asked) -> Asked:
    name = draw.choice(
        ["if-match", "opc-retry-token", "content-type", "opc-meta-a", "range", "authorization", "host", "content-md5",
         "x-content-sha256", "opc-client-request-id", "transfer-encoding"]
    )  # fmt: skip
    values = [draw.choice(["*", "a", "identity", "1", *asked.others.values()]) for _ in range(2)]
    spelled = draw.choice([name, name.upper(), name.replace("-", "_"), name.title()])
    return replace(asked, headers=(*asked.headers, (name, values[0]), (spelled, values[1])))


def method_overridden(draw: Draw, asked: Asked) -> Asked:
    name = draw.choice(["x-http-method-override", "x-http-method", "x-method-override"])
    wanted = draw.choice(["DELETE", "PUT", "POST", "GET", "PATCH"])
    if draw.random() < 0.3:
        return replace(asked, query=(*asked.query, ("_method", wanted)))
    return replace(asked, headers=(*asked.headers, (name, wanted)))


def another_method(draw: Draw, asked: Asked) -> Asked:
    return replace(asked, method=draw.choice(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "get", "OPTIONS"]))


def path_written_otherwise(draw: Draw, asked: Asked) -> Asked:
    parts = asked.path.split("/")
    at = draw.randrange(1, len(parts))
    other = _other(draw, asked)[1]
    ways = [
        f"%{ord(parts[at][0]):02x}{parts[at][1:]}" if parts[at] else "%2f", quote(quote(parts[at], safe=""), safe="%"),
        f"{parts[at]}%2f..%2f{other}", f"..%2f{other}", f"{parts[at]}%c0%af{other}", f"{parts[at]}/../{other}",
        f"{parts[at]};{other}", f"{parts[at]}%00{other}", f"{parts[at]}%3f{other}", f"./{parts[at]}", f"/{parts[at]}",
        f"{parts[at]}/", parts[at].upper(), f"{parts[at]}%20", f"{parts[at]}+", other, f"{parts[at]}:{other}",
        f"{parts[at]}@{other}", f"{parts[at]}%E0%80%AF{other}", f"{parts[at]}%FF",
    ]  # fmt: skip
    return replace(asked, path="/".join([*parts[:at], draw.choice(ways), *parts[at + 1 :]]))


def chunked(draw: Draw, asked: Asked) -> Asked:
    return replace(asked, is_chunked=True)


SEAMS: tuple[Seam, ...] = (
    parameter_twice, parameter_added, field_added, field_twice, field_odd, body_encoded, form_beside, header_twice,
    method_overridden, another_method, path_written_otherwise, path_written_otherwise, chunked,
)  # fmt: skip


def torn(draw: Draw, asked: Asked) -> Asked:
    """The request, rewritten at up to three places. Some stay valid: those must reach the resource that they name."""
    for seam in draw.choices(SEAMS, k=draw.choice([0, 1, 1, 1, 2, 3])):
        asked = replace(seam(draw, asked), seams=(*asked.seams, seam.__name__))
    return asked


def _without(headers: tuple[tuple[str, str], ...], name: str) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in headers if pair[0].lower() != name)
