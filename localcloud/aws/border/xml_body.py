# SPDX-License-Identifier: Apache-2.0
"""Parses S3's XML documents strictly, by the shapes of botocore's models, and writes them for moto.

moto's parser is lenient: it takes the first of several elements, ignores namespaces, and skips comments. This module
accepts only UTF-8 without declarations or comments, with one namespace. An element may repeat only if the model has a
list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from localcloud.aws.aws_errors import Reason, RefusalError
from localcloud.aws.border.parameters import canonical_value

_LONGEST = 4 * 1024 * 1024
_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
_SCHEMA = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_NOT_IN_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPACE = re.compile(r"[ \t\r\n]*")
# XML parsers turn a bare carriage return into a line break.
_ESCAPES = {"\r": "&#13;"}


def read_xml(body: bytes, name: str, namespace: str, shape: Any) -> Any:
    """The value of a document: its members by their names in the model."""
    if len(body) > _LONGEST:
        raise malformed_xml()
    try:
        text = body.decode()
        # Refuse declarations, which could define endless entities, and comments. Clients send neither.
        if "<!" in text or text.startswith("\ufeff"):
            raise malformed_xml()
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        raise malformed_xml() from None
    space, _, tag = root.tag.rpartition("}")
    if tag != name or space.removeprefix("{") not in ("", namespace):
        raise malformed_xml()
    return _read_element(root, shape, space)


def fits_xml(text: str) -> bool:
    """Whether XML can hold the text and gives it back unchanged. Names of objects may be others."""
    return _NOT_IN_XML.search(text) is None


def malformed_xml() -> RefusalError:
    message = "The XML you provided was not well-formed or did not validate against our published schema"
    return RefusalError(Reason.MALFORMED, message, "MalformedXML")


def _read_element(element: ElementTree.Element, shape: Any, space: str) -> Any:
    kind = shape.type_name
    if kind == "structure":
        inside = {name: one for name, one in shape.members.items() if "location" not in one.serialization}
        attribute = _attribute_of(inside)
        stated = _check_plain(element, attribute)
        value: dict[str, Any] = {attribute: stated} if stated else {}
        names = {_element_name(name, member): name for name, member in inside.items() if name != attribute}
        for item in element:
            name = names.get(_local_tag(item, space), "")
            member = inside[name] if name else _refuse_xml()
            if member.type_name == "list" and _is_flat(member):
                value.setdefault(name, []).append(_read_element(item, member.member, space))
            elif name in value:
                raise malformed_xml()
            else:
                value[name] = _read_element(item, member, space)
        if any(name in inside and name not in value for name in shape.required_members):
            raise malformed_xml()
        return value
    if kind == "list":
        _check_plain(element, "")
        tag = _item_name(shape)
        return [
            _read_element(item, shape.member, space)
            for item in element
            if _local_tag(item, space) == tag or _refuse_xml()
        ]
    if len(element) or element.attrib or kind == "map":
        raise malformed_xml()
    try:
        return canonical_value(element.text or "", kind, _local_tag(element, space))
    except RefusalError:
        raise malformed_xml() from None


def _attribute_of(members: Mapping[str, Any]) -> str:
    """The member that is an XML attribute, such as a grantee's type, or "". No shape has two."""
    return next((name for name, member in members.items() if member.serialization.get("xmlAttribute")), "")


def _check_plain(element: ElementTree.Element, attribute: str) -> str:
    """Refuses an element with text or with unknown attributes. Returns the value of its attribute."""
    texts = (element.text, *(item.tail for item in element))
    allowed = {_TYPE} if attribute else set()
    if set(element.attrib) - allowed or not all(_SPACE.fullmatch(text or "") for text in texts):
        raise malformed_xml()
    return element.get(_TYPE, "")


def _local_tag(element: ElementTree.Element, space: str) -> str:
    namespace, brace, tag = element.tag.rpartition("}")
    if namespace != space:
        raise malformed_xml()
    return tag if brace or not space else ""


def _refuse_xml() -> Any:
    raise malformed_xml()


def _is_flat(shape: Any) -> bool:
    return bool(shape.serialization.get("flattened"))


def _element_name(name: str, member: Any) -> str:
    return str(member.serialization.get("name", name))


def _item_name(shape: Any) -> str:
    return str(shape.member.serialization.get("name", "member"))


def write_xml(value: Any, name: str, shape: Any) -> bytes:
    """Writes a document for moto, without namespaces, because moto's parser ignores them."""
    return "".join(_xml_parts(value, name, shape)).encode()


def _xml_parts(value: Any, name: str, shape: Any) -> Iterator[str]:
    if shape.type_name == "structure":
        attribute = _attribute_of(shape.members)
        signs = {**_ESCAPES, '"': "&quot;", "\n": "&#10;", "\t": "&#9;"}
        start = f'{name} {_SCHEMA} xsi:type="{escape(value[attribute], signs)}"' if attribute in value else name
        yield f"<{start}>"
        for member, inner in shape.members.items():
            if member not in value or member == attribute:
                continue
            repeated = inner.type_name == "list" and _is_flat(inner)
            for item in value[member] if repeated else [value[member]]:
                yield from _xml_parts(item, _element_name(member, inner), inner.member if repeated else inner)
        yield f"</{name}>"
    elif shape.type_name == "list":
        yield f"<{name}>"
        for item in value:
            yield from _xml_parts(item, _item_name(shape), shape.member)
        yield f"</{name}>"
    else:
        yield f"<{name}>{escape(str(value), _ESCAPES)}</{name}>"
