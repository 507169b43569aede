# SPDX-License-Identifier: Apache-2.0
"""Puts fixed defects of the local AWS back, one at a time: the generated requests have to find each of them again.

Each function patches today's code so that it behaves as the old code did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

from components.aws.iam import decide
from localcloud.aws import calls, cloud, sigv4, simulation
from localcloud.aws.access import ec2_needs, ec2_resources
from localcloud.aws.border import parameters, requests, s3_values, xml_body
from localcloud.aws.refusals import objects, tags
from localcloud.aws.services import Wire
from localcloud.server.http import Request


class _Last:
    """The last request as its sender wrote it."""

    request: Request
    body: bytes = b""


@contextmanager
def _remembered() -> Iterator[_Last]:
    last = _Last()

    def remember(service: Any, region: str, request: Request, body: bytes) -> Any:
        last.request, last.body = request, body
        return calls.read_raw_call(service, region, request, body)

    with patch.object(cloud, "read_raw_call", remember):
        yield last


@contextmanager
def _forms_are_forwarded() -> Iterator[None]:
    """Finding 1: the access check reads the body as a query, whatever its content type is; moto gets body and content
    type unchanged."""
    with _remembered() as last:

        def as_sent(call: Any) -> Any:
            made = requests.write_request(call)
            if call.service.wire not in (Wire.EC2, Wire.QUERY):
                return made
            query = last.request.target.partition("?")[2]
            kind = last.request.headers.get("content-type", "")
            return replace(made, query=query, headers={"content-type": kind}, body=last.body)

        with patch.object(calls, "_is_type", lambda *_: True), patch.object(simulation, "write_request", as_sent):
            yield


def _old_deletions(body: bytes, *_: Any) -> Any:
    rows = [one for one in ElementTree.fromstring(body) if one.tag.rpartition("}")[2] == "Object"]
    return {"Objects": [{part.tag.rpartition("}")[2]: part.text or "" for part in row} for row in rows]}


@contextmanager
def _documents_are_forwarded() -> Iterator[None]:
    """Finding 4: the access check ignores XML namespaces in a list of deletions; moto gets the body unchanged."""
    with _remembered() as last:

        def lenient(body: bytes, name: str, namespace: str, shape: Any) -> Any:
            try:
                return _old_deletions(body) if name == "Delete" else xml_body.read_xml(body, name, namespace, shape)
            except ElementTree.ParseError:
                raise xml_body.malformed_xml() from None

        def as_sent(call: Any) -> Any:
            made = requests.write_request(call)
            return replace(made, body=last.body) if call.operation == "DeleteObjects" else made

        reader = SimpleNamespace(read_xml=lenient, malformed_xml=xml_body.malformed_xml)
        with (
            patch.object(s3_values, "xml_body", reader), patch.object(s3_values, "_check_deleted", lambda rows: None),
            patch.object(simulation, "write_request", as_sent),
        ):  # fmt: skip
            yield


@contextmanager
def _links_take_headers() -> Iterator[None]:
    """Finding 5: a presigned request may have headers that its signature does not cover."""
    verify = sigv4.verify_sigv4

    def without(request: Request, parts: sigv4.SignedRequest, secret: str, digest: str | None) -> None:
        if parts.presigned:
            kept = {name: text for name, text in request.headers.items()
                    if not name.startswith("x-amz-") or name in (*parts.headers, "x-amz-content-sha256")}  # fmt: skip
            request = replace(request, headers=kept)
        verify(request, parts, secret, digest)

    with patch.object(sigv4, "verify_sigv4", without):
        yield


@contextmanager
def _uploads_go_by_their_id() -> Iterator[None]:
    """Finding 6: it is not checked that an upload belongs to the key for which access was checked."""
    with patch.object(objects, "refuse_foreign_uploads", lambda call: None):
        yield


@contextmanager
def _launches_are_judged_by_their_template() -> Iterator[None]:
    """The role of a launch template is passed, whatever role the call gives."""
    passed = ec2_needs._roles_passed

    def of_template(call: Any) -> Iterator[tuple[str, str]]:
        own = (name for name in call.parameters if name.startswith("LaunchTemplate."))
        profile = {"IamInstanceProfile.Name": "small"} if any(own) else {}
        kept = {name: text for name, text in call.parameters.items() if not (profile and name.endswith("Profile.Arn"))}
        yield from passed(replace(call, parameters={**kept, **profile}))

    with patch.object(ec2_needs, "_roles_passed", of_template):
        yield


@contextmanager
def _principals_go_by_their_last_name() -> Iterator[None]:
    """A principal is compared without its account and its folder."""
    among = decide._names_principal

    def by_name(named: Any, allows: bool, principal: Any, service: str) -> bool:
        names = (name for name in named.get("AWS", ()) if principal.role and ":role/" in name)
        return among(named, allows, principal, service) or any(
            name.rpartition("/")[2] == principal.role for name in names
        )

    with patch.object(decide, "_names_principal", by_name):
        yield


@contextmanager
def _tags_go_by_their_order() -> Iterator[None]:
    """A tag may be given twice: the access check takes the last in the request, moto the one with the highest
    number."""
    read = parameters.read_flat_parameters

    def in_order(given: Mapping[str, str], shape: Any, wire: Wire) -> dict[str, str]:
        found = read(given, shape, wire)
        return {name: found[name] for name in given if name in found}

    with patch.object(requests, "read_flat_parameters", in_order), patch.object(tags, "refuse_tags", lambda call: None):
        yield


@contextmanager
def _only_some_parameters_refer() -> Iterator[None]:
    """Access is checked for ids in parameters of known names only."""
    named = ec2_resources.named_resources

    def known(call: Any) -> list[str]:
        rest = {name: text for name, text in call.parameters.items() if not name.startswith(("Add", "Remove", "Peer"))}
        return named(replace(call, parameters=rest))

    with patch.object(ec2_needs, "named_resources", known):
        yield


PUT_BACK: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "1: forms": _forms_are_forwarded, "4: deletions": _documents_are_forwarded, "5: links": _links_take_headers,
    "6: uploads": _uploads_go_by_their_id, "7: launches": _launches_are_judged_by_their_template,
    "8: principals": _principals_go_by_their_last_name, "9: tags": _tags_go_by_their_order,
    "10: references": _only_some_parameters_refer,
}  # fmt: skip
